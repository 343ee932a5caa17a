import test from "ava";
import type { AnalyticsView } from "../../../../resources/links/analytics.ts";
import { formatDay } from "../../../../server/ui/controls.ts";
import { BROWSER, isProblem, type LinkBody } from "../../../harness/clients/api.ts";
import { linksInBrowser } from "../../../harness/clients/pages.ts";
import type { Page, TestBrowser } from "../../../harness/clients/test-browser.ts";
import { advanceToNoon } from "../../../harness/clock.ts";
import { atOnce, clickAt } from "../../../harness/database/storage.ts";
import { startTestService } from "../../../harness/service.ts";

advanceToNoon();
const service = await startTestService({ COUNTRY_HEADER: "CF-IPCountry" });
test.after.always(() => service.close());

const TODAY = new Date(Date.now()).toISOString().slice(0, 10);
const SHOWN_TODAY = formatDay(Date.now());

async function click({ short_url }: LinkBody, headers: Record<string, string> = {}) {
  await fetch(short_url, { redirect: "manual", headers: { "user-agent": BROWSER, ...headers } });
}

/** Creates a link with five clicks and one from a bot, and a link without clicks. */
async function createClickedLink() {
  const team = await linksInBrowser(service);
  const [link, other] = [await team.create({ title: "Followed" }), await team.create()];
  for (const headers of [
    { referer: "https://news.example/a", "cf-ipcountry": "SE" },
    { referer: "https://news.example/b", "cf-ipcountry": "SE" },
    { referer: "https://news.example/c", "cf-ipcountry": "DE" },
    { referer: "https://social.example/" },
    {},
    { "user-agent": "Googlebot/2.1" },
  ]) {
    await click(link, headers as Record<string, string>);
  }
  return { ...team, link, other };
}

const textsOf = ({ html }: Page, selector: string) =>
  html.querySelectorAll(selector).map(({ text }) => text.trim());

test("the JSON analytics of a link, and of all links, are those of the API", async (t) => {
  const { member, base, path, link, other, create } = await createClickedLink();
  const analytics = async (address: string) => (await member.api.get<AnalyticsView>(address)).body;
  const { days, ...sums } = await analytics(`${path}/${link.id}/analytics`);
  t.deepEqual(sums, {
    clicks: 5,
    bot_clicks: 1,
    referrers: [
      { referrer: "news.example", clicks: 3 },
      { referrer: null, clicks: 1 },
      { referrer: "social.example", clicks: 1 },
    ],
    countries: [
      { country: null, clicks: 2 },
      { country: "SE", clicks: 2 },
      { country: "DE", clicks: 1 },
    ],
    devices: [{ device: "desktop", clicks: 5 }],
    browsers: [{ browser: "Firefox", clicks: 5 }],
    operating_systems: [{ operating_system: "Linux", clicks: 5 }],
  });
  t.is(days.length, 30);
  t.deepEqual(days.at(-1), { date: TODAY, clicks: 5, bot_clicks: 1 });
  t.is((await analytics(`${path}/${other.id}/analytics`)).clicks, 0);
  await click(await create());
  t.is((await analytics(`${base}/analytics`)).clicks, 6);
  t.is((await analytics(`${base}/analytics?from=2026-01-01&to=2026-01-31`)).days.length, 31);
});

test("the page of a link has an accessible chart of the last 30 days", async (t) => {
  const { open, link } = await createClickedLink();
  const page = await open(`/${link.id}`);
  const chart = page.html.querySelector("svg[role=img]");
  t.regex(chart?.attributes["aria-label"] ?? "", /: 5 in total, with a peak of 5 on \w{3} \d+, \d{4}\.$/);
  t.is(page.html.querySelectorAll("svg[role=img] g").length, 30);
  t.is(page.html.querySelectorAll("svg[role=img] .people").length, 0);
  t.is(page.html.querySelectorAll("svg[role=img] .open").length, 1, "today isn't over");
  t.is(page.html.querySelectorAll("svg[role=img] .bots").length, 1);
  t.deepEqual(textsOf(page, "svg[role=img] g:last-of-type title"), [
    `${SHOWN_TODAY}, so far: 5 clicks · 1 from known bots`,
  ]);
  t.is(page.html.querySelectorAll(".chart tbody tr").length, 30);
  t.deepEqual(textsOf(page, ".chart tbody tr:first-child td"), [SHOWN_TODAY, "5", "1"]);
  t.is(page.html.querySelectorAll("[style], style").length, 0);
});

test("the page of a link shows where its clicks come from", async (t) => {
  const { open, link } = await createClickedLink();
  const page = await open(`/${link.id}`);
  t.deepEqual(textsOf(page, '[data-head="Referrer"]'), ["news.example", "Direct", "social.example"]);
  t.deepEqual(textsOf(page, '[data-head="Country"]'), ["Unknown", "Sweden", "Germany"]);
  for (const [head, name] of Object.entries({ Device: "Desktop", Browser: "Firefox", System: "Linux" }))
    t.deepEqual(textsOf(page, `[data-head="${head}"]`), [name]);
  const shares = ["60%", "20%", "20%", "40%", "40%", "20%", "100%", "100%", "100%"];
  t.deepEqual(textsOf(page, '[data-head="Share"]'), shares);
  t.notRegex(page.text, /MMDB_PATH/);
});

test("clicks without a country name the setting that is missing", async (t) => {
  const { create, open } = await linksInBrowser(service);
  const link = await create();
  await click(link);
  t.regex(
    (await open(`/${link.id}`)).html.text,
    /Countries are unknown until the operator .* sets MMDB_PATH\./,
  );
});

test("people and known bots are two numbers on the page of a link, and one limit", async (t) => {
  const { create, open } = await linksInBrowser(service);
  const link = await create({ max_clicks: 3 });
  for (const agent of [BROWSER, "Googlebot/2.1"]) await click(link, { "user-agent": agent });
  const page = await open(`/${link.id}`);
  t.regex(page.html.text, /Clicks\s*1 · 1 from known bots · limit 3, known bots included · last /);
  t.notRegex(page.html.text, /limit reached/);
  await click(link, { "user-agent": "Googlebot/2.1" });
  t.regex((await open(`/${link.id}`)).text, /limit reached/);
});

test("one day is shown by hours, and each preset marks itself", async (t) => {
  const { open, link } = await createClickedLink();
  for (const [name, bars, unit] of [
    ["Today", 24, "hour"],
    ["7 days", 7, "day"],
    ["30 days", 30, "day"],
    ["90 days", 90, "day"],
  ] as const) {
    const page = await open(`/${link.id}/analytics`);
    const preset = page.html.querySelectorAll(".tabs a").find(({ text }) => text === name);
    const shown = await open(`/${link.id}/analytics${preset?.attributes.href?.replace(/^[^?]*/, "")}`);
    t.deepEqual(textsOf(shown, ".tabs [aria-current]"), [name]);
    t.is(shown.html.querySelectorAll("svg[role=img] g").length, bars);
    t.regex(
      shown.html.querySelector("svg[role=img]")?.attributes["aria-label"] ?? "",
      new RegExp(`^Clicks per ${unit}, `),
    );
  }
  const today = await open(`/${link.id}/analytics?from=${TODAY}`);
  t.regex(today.text, /0 clicks yesterday\./);
  t.deepEqual(textsOf(today, ".ticks text"), ["00:00", "06:00", "12:00", "18:00"]);
});

test("a range has its days or its months below the chart, and its last day at the end", async (t) => {
  const { open, link } = await createClickedLink();
  const page = await open(`/${link.id}/analytics?from=2025-10-15&to=2026-02-20`);
  t.regex(page.text, /No clicks in this date range/);
  const chosen = await service.storage.links.resolve(link.slug);
  if (!chosen) throw new Error("no link");
  await service.storage.links.click(chosen, clickAt(Date.parse("2026-01-05T12:00:00Z")));
  const clicked = await open(`/${link.id}/analytics?from=2025-10-15&to=2026-02-20`);
  t.deepEqual(textsOf(clicked, ".ticks text"), ["Nov", "Dec", "2026", "Feb 20"]);
  const month = await open(`/${link.id}/analytics?from=2026-01-01&to=2026-01-31`);
  t.deepEqual(textsOf(month, ".ticks text"), ["Jan 1", "Jan 16", "Jan 31"]);
});

const CHANGES: [before: number, now: number, sentence: RegExp][] = [
  [4, 5, /\+25% compared with the 2 days before\./],
  [3, 2, /−33% compared with the 2 days before\./],
  [2, 2, /0% compared with the 2 days before\./],
  [0, 2, /No clicks in the 2 days before\./],
];

test("clicks are compared with the period of the same length before", async (t) => {
  for (const [before, now, sentence] of CHANGES) {
    const { create, open } = await linksInBrowser(service);
    const { id, slug } = await create();
    const link = await service.storage.links.resolve(slug);
    if (!link) throw new Error("no link");
    const clickOn = (date: string, times: number) =>
      atOnce(times, () => service.storage.links.click(link, clickAt(Date.parse(date))));
    // What is outside both periods, and a bot, must not count.
    await clickOn("2026-01-02T23:59:59Z", 7);
    await clickOn("2026-01-04T23:59:59Z", before);
    await clickOn("2026-01-05T00:00:00Z", now);
    await service.storage.links.click(link, clickAt(Date.parse("2026-01-05T00:00:00Z"), { bot: true }));
    t.regex((await open(`/${id}/analytics?from=2026-01-05&to=2026-01-06`)).text, sentence);
  }
});

test("the analytics of all links name those with the most clicks", async (t) => {
  const { browser, base, create, link } = await createClickedLink();
  await click(await create({ title: "Once" }));
  const page = await browser.open(`${service.url}${base}/analytics`);
  t.deepEqual(textsOf(page, '[data-head="Link"]'), ["Followed", "Once"]);
  const [first] = page.html.querySelectorAll('[data-head="Link"] a');
  t.is(first?.attributes.href, `${base}/links/${link.id}`);
});

test("the analytics of all links name the top 10, also with a filter, and lead to all links", async (t) => {
  const { browser, base, create, link } = await createClickedLink();
  for (let index = 0; index < 10; index++) await click(await create({ title: `Link ${index}` }));
  const page = await browser.open(`${service.url}${base}/analytics`);
  for (const shown of [page, await follow(browser, page, "Firefox")]) {
    t.is(textsOf(shown, '[data-head="Link"]').length, 10);
    t.true(textsOf(shown, "h2").includes("Top 10 links by clicks"));
    const all = await follow(browser, shown, "All links by total clicks");
    t.is(all.html.querySelectorAll("tbody tr").length, 12);
    t.is(all.html.querySelector(".short")?.attributes.href, `${base}/links/${link.id}`);
  }
});

const follow = (browser: TestBrowser, page: Page, text: string) => {
  const link = page.html.querySelectorAll("main a").find((candidate) => candidate.text.trim() === text);
  return browser.open(new URL(link?.attributes.href ?? "", page.url).href);
};
const figureOn = (page: Page) => page.html.querySelector("p strong.figure")?.text;
const chipOn = (page: Page) => page.html.querySelector(".filter .badge")?.text;

const ORIGINS: [name: string, chip: string, clicks: string][] = [
  ["news.example", "Referrer: news.example", "3"],
  ["Direct", "Referrer: Direct", "1"],
  ["Sweden", "Country: Sweden", "2"],
  ["Unknown", "Country: Unknown", "2"],
  ["Desktop", "Device: Desktop", "5"],
  ["Firefox", "Browser: Firefox", "5"],
  ["Linux", "System: Linux", "5"],
];
for (const [name, chip, clicks] of ORIGINS) {
  test(`the name ${name} filters the analytics by it, and Clear ends that`, async (t) => {
    const { browser, open, base, link, create } = await createClickedLink();
    await click(await create(), { referer: "https://news.example/", "user-agent": "curl/8.5.0" });
    for (const page of [await open(`/${link.id}`), await open(`/${link.id}/analytics`)]) {
      const filtered = await follow(browser, page, name);
      t.is(chipOn(filtered), chip);
      t.is(figureOn(filtered), clicks);
      t.is(filtered.html.querySelectorAll("svg[role=img] g").length, 30);
      t.deepEqual(textsOf(filtered, "h3"), []);
      t.regex(filtered.text, /Hours, known bots and the other breakdowns aren’t available/);
      t.is(figureOn(await follow(browser, filtered, "Clear the filter")), "5");
    }
    const filtered = await follow(browser, await browser.open(`${service.url}${base}/analytics`), name);
    t.is(chipOn(filtered), chip);
    t.deepEqual(textsOf(filtered, '[data-head="Link"]')[0], "Followed");
  });
}

test("the filter is kept with another date range, of which a single day has no chart", async (t) => {
  const { browser, base, create } = await createClickedLink();
  await click(await create({ title: "Once" }), { referer: "https://news.example/" });
  const page = await browser.open(`${service.url}${base}/analytics?by=referrer&value=news.example`);
  t.is(figureOn(page), "4");
  t.deepEqual(textsOf(page, '[data-head="Link"]'), ["Followed", "Once"]);
  t.deepEqual(textsOf(page, '[data-head="Share"]'), ["75%", "25%"]);
  const today = await follow(browser, page, "Today");
  t.is(chipOn(today), "Referrer: news.example");
  t.is(figureOn(today), "4");
  t.is(today.html.querySelector("svg[role=img]"), null);
  t.regex(today.text, /0 clicks yesterday\./);
  const january = await browser.press(today, "Apply", { from: "2026-01-01", to: "2026-01-31" });
  t.is(chipOn(january), "Referrer: news.example");
  t.is(figureOn(january), "0");
  const cleared = await follow(browser, january, "Clear the filter");
  t.is(new URL(cleared.url).search, "?from=2026-01-01&to=2026-01-31");
});

test("the JSON of filtered analytics has clicks by day, and nothing that isn't known", async (t) => {
  const { member, base, path, link } = await createClickedLink();
  for (const address of [`${base}/analytics`, `${path}/${link.id}/analytics`]) {
    const query = `by=country&value=SE&from=${TODAY}&to=${TODAY}`;
    const { body } = await member.api.get<object>(`${address}?${query}`);
    t.deepEqual(body, { by: "country", value: "SE", clicks: 2, days: [{ date: TODAY, clicks: 2 }] });
  }
});

const INVALID_ORIGINS: [query: string, code: string, fields: string[]][] = [
  ["by=color&value=red", "invalid_by", ["by"]],
  ["value=news.example", "invalid_by", ["by"]],
  [`by=referrer&value=${"x".repeat(256)}`, "invalid_value", ["value"]],
  ["by=referrer&value=%00", "invalid_value", ["value"]],
  ["by=referrer&by=country", "invalid_by", ["by"]],
  ["by=referrer&from=yesterday", "invalid_from", ["from"]],
];
for (const [query, code, fields] of INVALID_ORIGINS) {
  test(`analytics with ${query.slice(0, 40)} are rejected, and the page names the error`, async (t) => {
    const { member, base, browser } = await createClickedLink();
    isProblem(t, await member.api.send("GET", `${base}/analytics?${query}`), { status: 422, code, fields });
    const page = await browser.open(`${service.url}${base}/analytics?${query}`);
    t.is(page.status, 422);
    t.truthy(page.html.querySelector("[role=alert]"));
    t.is(figureOn(page), "5");
  });
}

test("a value that no click has, also one that isn't a country, is shown as it is", async (t) => {
  const { browser, base } = await createClickedLink();
  for (const [by, name] of Object.entries({ country: "Country", device: "Device", browser: "Browser" })) {
    const query = new URLSearchParams({ by, value: `"><b>x` });
    const page = await browser.open(`${service.url}${base}/analytics?${query}`);
    t.is(page.status, 200);
    t.is(chipOn(page), `${name}: "><b>x`);
    t.false(page.text.includes("<b>"));
    t.is(figureOn(page), "0");
  }
});

test("another organization's analytics can't be filtered", async (t) => {
  const { stranger, base, path, link } = await createClickedLink();
  for (const address of [`${base}/analytics`, `${path}/${link.id}/analytics`])
    t.is((await stranger.api.send("GET", `${address}?by=country&value=SE`)).status, 404);
});

test("a link without clicks has a hint instead of a chart", async (t) => {
  const { open, other } = await createClickedLink();
  const page = await open(`/${other.id}`);
  t.is(page.html.querySelector(".chart"), null);
  t.regex(page.text, /No clicks yet/);
});

test("the overview of the organization shows the totals of all links", async (t) => {
  const { browser, base, create, link } = await createClickedLink();
  await click(await create());
  await browser.press(await browser.open(`${service.url}${base}/links/${link.id}/delete`), "Delete link");
  const page = await browser.open(service.url + base);
  t.deepEqual(textsOf(page, ".usage li > span"), ["2 of 1,000,000", "3 of 250", "0"]);
  t.is(page.html.querySelector("p strong.figure")?.text, "6");
  t.regex(page.html.querySelector("svg[role=img]")?.attributes["aria-label"] ?? "", /: 6 in total/);
});

test("the analytics page shows any date range", async (t) => {
  const { browser, open, link, base } = await createClickedLink();
  for (const page of [
    await open(`/${link.id}/analytics`),
    await browser.open(`${service.url}${base}/analytics`),
  ]) {
    t.is(page.html.querySelector("p strong.figure")?.text, "5");
    const january = await browser.open(`${page.url}?from=2026-01-01&to=2026-01-31`);
    t.is(january.html.querySelector("[name=from]")?.attributes.value, "2026-01-01");
    t.is(january.html.querySelector("[name=to]")?.attributes.value, "2026-01-31");
    t.regex(january.text, /No clicks in this date range/);
    const cleared = await browser.open(`${page.url}?from=&to=`);
    t.is(cleared.html.querySelector("p strong.figure")?.text, "5");
  }
});

const INVALID_RANGES: [query: string, code: string, field: string][] = [
  ["from=2026-02-01&to=2026-01-01", "invalid_from", "from"],
  ["from=2020-01-01&to=2026-01-01", "invalid_from", "from"],
  ["from=yesterday", "invalid_from", "from"],
  ["to=2026-02-30", "invalid_to", "to"],
  ["day=2026-01-01", "unknown_field", "day"],
];

for (const [query, code, field] of INVALID_RANGES) {
  test(`the date range ${query} is rejected, and the page names the error`, async (t) => {
    const { member, base, path, link, browser } = await createClickedLink();
    for (const address of [`${base}/analytics`, `${path}/${link.id}/analytics`]) {
      const reply = await member.api.send("GET", `${address}?${query}`);
      isProblem(t, reply, { status: 422, code, fields: [field] });
      const page = await browser.open(`${service.url}${address}?${query}`);
      t.is(page.status, 422);
      const alert = page.html.querySelector("[role=alert]");
      t.truthy(alert);
      if (field !== "day") t.truthy(page.html.querySelector(`#${field}-error`));
      else
        t.regex(alert?.text ?? "", /\bday\b/, "an error without a field in the form is named in the alert");
      t.is(page.html.querySelector("p strong.figure")?.text, "5");
    }
  });
}
