import test from "ava";
import { parse } from "node-html-parser";
import type { AnalyticsView } from "../../resources/links/analytics.ts";
import { clicksPanel, sourcesPanel } from "../../server/dashboard/links/analytics.ts";
import { advanceToNoon, DAY_MS } from "../harness/clock.ts";

advanceToNoon();

const dateOf = (time: number) => new Date(time).toISOString().slice(0, 10);
const TODAY = dateOf(Date.now());
const HOURS = Array.from({ length: 24 }, (_, hour) => ({ hour, clicks: hour === 3 ? 5 : 0, bot_clicks: 0 }));

/** Returns analytics of each day from a date to another, with all clicks on the last one. */
function viewOf(from: string, to: string, changes: Partial<AnalyticsView> = {}): AnalyticsView {
  const { clicks = 5, bot_clicks = 1 } = changes;
  const length = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
  const days = Array.from({ length }, (_, index) => ({
    date: dateOf(Date.parse(from) + index * DAY_MS),
    ...(index === length - 1 ? { clicks, bot_clicks } : { clicks: 0, bot_clicks: 0 }),
  }));
  return {
    time_zone: "UTC",
    clicks,
    bot_clicks,
    days,
    referrers: ["news.example", null, '"><b>social'].map((referrer, index) => ({
      referrer,
      clicks: index ? 1 : 3,
    })),
    countries: [null, "SE", "xx"].map((country, index) => ({ country, clicks: index < 2 ? 2 : 1 })),
    devices: [{ device: "desktop", clicks: 5 }],
    browsers: [{ browser: "Firefox", clicks: 5 }],
    operating_systems: [{ operating_system: "Linux", clicks: 5 }],
    destinations: [],
    utm_sources: [{ utm_source: "Letter", clicks: 2 }],
    utm_mediums: [],
    utm_campaigns: [],
    ...changes,
  };
}

type Panels = Parameters<typeof clicksPanel>[1] & Parameters<typeof sourcesPanel>[1];

function panelOf(view: AnalyticsView, panel: Partial<Panels> = {}) {
  const own = {
    title: "Clicks",
    empty: "No clicks yet.",
    path: "/analytics",
    query: {},
    needsCountries: false,
  };
  const panels = { ...own, earliest: "2026-01-01", ...panel };
  const html = parse(`${clicksPanel(view, panels)}${sourcesPanel(view, panels)}`);
  const textsOf = (selector: string) => html.querySelectorAll(selector).map(({ text }) => text.trim());
  return { html, textsOf, text: html.text.replaceAll(/\s+/g, " ") };
}

test("clicks have an accessible chart, with bots apart, a day that isn't over, and a table", (t) => {
  const { html, textsOf } = panelOf(viewOf(dateOf(Date.now() - 29 * DAY_MS), TODAY));
  const label = html.querySelector("svg[role=img]")?.attributes["aria-label"] ?? "";
  t.regex(label, /^Clicks per day, .*: 5 in total, with a peak of 5 on \w{3} \d+, \d{4}\.$/);
  t.is(html.querySelectorAll("svg[role=img] g").length, 30);
  for (const [kind, count] of Object.entries({ people: 0, open: 1, bots: 1 }))
    t.is(html.querySelectorAll(`svg[role=img] .${kind}`).length, count, kind);
  t.regex(
    textsOf("svg[role=img] g:last-of-type title").join(),
    /, today so far: 5 clicks · 1 from known bots$/,
  );
  t.is(html.querySelectorAll(".chart tbody tr").length, 30);
  t.deepEqual(textsOf(".chart tbody tr:first-child td").slice(1), ["5", "1"]);
  t.is(html.querySelectorAll("[style], style").length, 0);
});

test("the day and the hour that aren't over are those of the organization's time zone", (t) => {
  const tomorrow = dateOf(Date.now() + DAY_MS);
  const titlesOf = (hours?: typeof HOURS) => {
    const view = viewOf(tomorrow, tomorrow, { time_zone: "Pacific/Kiritimati", ...(hours && { hours }) });
    return panelOf(view, { previous: 2 });
  };
  t.regex(titlesOf().textsOf("svg[role=img] title").join(), /, today so far: 5 clicks/);
  t.regex(titlesOf().text, /2 clicks yesterday\./);
  t.regex(titlesOf(HOURS).textsOf("svg[role=img] title").join(), /02:00, this hour so far: 0 clicks/);
  t.regex(titlesOf(HOURS).text, /Hour \(Pacific\/Kiritimati\)/);
});

test("the sources of clicks have names, shares, and links that add a filter to the others", (t) => {
  const query = { from: "2026-01-01", to: "2026-01-31", utm_medium: "" };
  const { html, textsOf } = panelOf(viewOf("2026-01-01", "2026-01-31"), { query });
  t.deepEqual(textsOf('[data-head="Referrer"]'), ["news.example", "Direct", '"><b>social']);
  t.deepEqual(textsOf('[data-head="Country"]'), ["Unknown", "Sweden", "xx"]);
  for (const [head, name] of Object.entries({ Device: "Desktop", Browser: "Firefox", System: "Linux" }))
    t.deepEqual(textsOf(`[data-head="${head}"]`), [name]);
  t.deepEqual(textsOf('[data-head="Share"]').slice(0, 4), ["60%", "20%", "20%", "40%"]);
  t.deepEqual(textsOf("h3"), [
    "Referrers",
    "Countries",
    "Devices",
    "Browsers",
    "Operating systems",
    "UTM sources",
  ]);
  const hrefOf = (name: string) =>
    html.querySelectorAll("a").find(({ text }) => text === name)?.attributes.href;
  const filtered = "/analytics?from=2026-01-01&to=2026-01-31&utm_medium=";
  t.is(hrefOf("Direct"), `${filtered}&referrer=`);
  t.is(hrefOf("Sweden"), `${filtered}&country=SE`);
  t.is(hrefOf("Letter"), `${filtered}&utm_source=Letter`);
  t.is(html.querySelectorAll("b").length, 0);
});

test("days before those that can be filtered are said, and aren't part of a filter's range", (t) => {
  const view = viewOf("2026-01-01", "2026-01-31");
  const earliest = dateOf(Date.parse(TODAY) - 29 * DAY_MS);
  t.regex(panelOf(view, { earliest }).text, /Filters reach back 30 days, to /);
  t.is(panelOf(view, { earliest }).html.querySelectorAll(".places a").length, 0);
  const some = panelOf(view, { earliest: "2026-01-15" }).html.querySelector(".places a");
  t.regex(some?.attributes.href ?? "", /from=2026-01-15&to=2026-01-31/);
});

test("clicks without a country name the setting that is missing", (t) => {
  const view = viewOf(TODAY, TODAY, { countries: [{ country: null, clicks: 5 }] });
  t.regex(panelOf(view, { needsCountries: true }).text, /unknown until the operator .* sets MMDB_PATH\./);
  t.notRegex(panelOf(view).text, /MMDB_PATH/);
});

test("without clicks, there is a hint instead of a chart", (t) => {
  const { html, text } = panelOf(viewOf(TODAY, TODAY, { clicks: 0, bot_clicks: 0 }));
  t.deepEqual([html.querySelector(".chart"), text.includes("No clicks yet.")], [null, true]);
});

for (const [what, view, ticks] of [
  ["a day", viewOf(TODAY, TODAY, { hours: HOURS }), ["00:00", "06:00", "12:00", "18:00"]],
  ["a month", viewOf("2026-01-01", "2026-01-31"), ["Jan 1", "Jan 16", "Jan 31"]],
  ["several months", viewOf("2025-10-15", "2026-02-20"), ["Nov", "Dec", "2026", "Feb 20"]],
] as const)
  test(`${what} has ${ticks.join(", ")} below the chart`, (t) => {
    const { html, textsOf } = panelOf(view);
    t.deepEqual(textsOf(".ticks text"), ticks);
    t.is(html.querySelectorAll("svg[role=img] g").length, view.hours?.length ?? view.days.length);
  });

test("clicks are compared with those before in percent, except for a day that isn't over", (t) => {
  for (const [previous, clicks, sentence] of [
    [4, 5, "+25% compared with the 2 days before."],
    [3, 2, "−33% compared with the 2 days before."],
    [2, 2, "0% compared with the 2 days before."],
    [0, 2, "No clicks in the 2 days before."],
  ] as const) {
    const view = viewOf("2026-01-05", "2026-01-06", { clicks });
    t.true(panelOf(view, { previous }).text.includes(sentence), sentence);
  }
  t.regex(panelOf(viewOf(TODAY, TODAY), { previous: 2 }).text, /2 clicks yesterday\./);
});

test("the scale of a chart ends soon above its highest bar, and its middle is a whole number", (t) => {
  for (const [highest, top] of Object.entries({ 1: 2, 11: 12, 26: 30, 81: 100, 2117: 2400 })) {
    const clicks = Number(highest);
    const { textsOf } = panelOf(viewOf("2026-01-05", "2026-01-06", { clicks, bot_clicks: 0 }));
    t.is(textsOf(".scale span")[0], top.toLocaleString("en"));
    t.is(textsOf(".scale span")[1], (top / 2).toLocaleString("en"));
  }
});
