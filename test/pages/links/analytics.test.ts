import test from "ava";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import type { ResolvedLink } from "../../../resources/links/types.ts";
import { apiAt, BROWSER, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { alertOn, follow, linksInBrowser, textsOn, typedIn } from "../../harness/clients/pages.ts";
import type { Page } from "../../harness/clients/test-browser.ts";
import { advanceToNoon } from "../../harness/clock.ts";
import { clickAt } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

advanceToNoon();
const service = await startTestService({ COUNTRY_HEADER: "CF-IPCountry" });

const TODAY = new Date(Date.now()).toISOString().slice(0, 10);
async function click({ short_url }: LinkBody, headers: Record<string, string> = {}) {
  await fetch(short_url, { redirect: "manual", headers: { "user-agent": BROWSER, ...headers } });
}

/** Creates a link with five clicks and one from a bot, and a link without clicks. */
async function createClickedLink() {
  const team = await linksInBrowser(service);
  const link = await team.create({ title: "Followed" });
  await team.create();
  const visits: Record<string, string>[] = [
    { referer: "https://news.example/a", "cf-ipcountry": "SE" },
    { referer: "https://news.example/b", "cf-ipcountry": "SE" },
    { referer: "https://news.example/c", "cf-ipcountry": "DE" },
    {},
    {},
    { "user-agent": "Googlebot/2.1" },
  ];
  for (const headers of visits) await click(link, headers);
  return { ...team, link };
}

test("the JSON analytics of a link, and of all links, are those of the API, filtered as well", async (t) => {
  const { member, base, link, create, organization } = await createClickedLink();
  await click(await create());
  const app = await service.createOrganization();
  const tokens = await tokensFor(service, app, member, { organizationId: organization.id });
  const api = apiAt(service.url, tokens.access_token);
  const analytics = async (address: string) => (await member.api.get<AnalyticsView>(address)).body;
  for (const [address, clicks] of [
    [`/links/${link.id}/analytics`, 5],
    ["/analytics", 6],
    ["/analytics?from=2026-01-01&to=2026-01-31", 0],
    [`/links/${link.id}/analytics?country=SE&from=${TODAY}`, 2],
    ["/analytics?country=SE&referrer=news.example&browser=Safari", 0],
    ["/analytics?referrer=", 3],
  ] as const) {
    const shown = await analytics(base + address);
    t.deepEqual(shown, (await api.get<AnalyticsView>(`/v1${address}`)).body);
    t.is(shown.clicks, clicks);
  }
});

test("a link's pages show its clicks, their sources, and those of as many days before; each preset marks itself", async (t) => {
  const { browser, open, link } = await createClickedLink();
  const shown = await open(`/${link.id}`);
  t.is(shown.html.querySelectorAll("svg[role=img] g").length, 30);
  t.deepEqual(textsOn(shown, '[data-head="Country"]'), ["Unknown", "Sweden", "Germany"]);
  for (const [name, bars, unit] of [
    ["Today", 24, "hour"],
    ["7 days", 7, "day"],
    ["30 days", 30, "day"],
  ] as const) {
    const shown = await follow(browser, await open(`/${link.id}/analytics`), name);
    t.deepEqual(textsOn(shown, ".tabs [aria-current]"), [name]);
    t.is(shown.html.querySelectorAll("svg[role=img] g").length, bars);
    t.truthy(shown.html.querySelector(`svg[role=img][aria-label^="Clicks per ${unit}, "]`));
  }
  const today = await open(`/${link.id}/analytics?from=${TODAY}`);
  t.regex(today.text, /0 clicks yesterday\./);
  const resolved = (await service.storage.links.resolve(link.slug)) as ResolvedLink;
  for (const day of [2, 2, 3, 4, 5, 5, 6])
    await service.storage.links.click(resolved, clickAt(Date.UTC(2026, 0, day, 23)));
  const past = await open(`/${link.id}/analytics?from=2026-01-05&to=2026-01-06`);
  t.regex(past.text, /\+50% compared with the 2 days before\./);
});

const figureOn = (page: Page) => page.html.querySelector("p strong.figure")?.text;
const chipsOn = (page: Page) =>
  textsOn(page, ".filter .badge").map((text) => text.replace("Remove the filter ", ""));

test("filters combine, are kept with another date range, and can be removed", async (t) => {
  const { browser, base, create } = await createClickedLink();
  await click(await create({ title: "Once" }), { referer: "https://news.example/" });
  const all = await browser.open(`${service.url}${base}/analytics`);
  const page = await follow(browser, all, "news.example");
  t.is(figureOn(page), "4");
  t.deepEqual(textsOn(page, '[data-head="Link"]'), ["Followed", "Once"]);
  t.deepEqual(textsOn(page, '[data-head="Share"]').slice(0, 2), ["75%", "25%"]);
  t.is(new URL((await follow(browser, page, "All-time top links")).url).search, "?archived=all&sort=-clicks");
  const sweden = await follow(browser, page, "Sweden");
  t.is(figureOn(sweden), "2");
  t.deepEqual(textsOn(sweden, '[data-head="Country"]'), ["Sweden"]);
  const today = await follow(browser, sweden, "Today");
  t.deepEqual(chipsOn(today), ["Referrer: news.example", "Country: Sweden"]);
  t.is(today.html.querySelectorAll("svg[role=img] g").length, 24);
  const link = await follow(browser, today, "Followed");
  t.is(figureOn(link), "2");
  t.deepEqual(chipsOn(link), ["Referrer: news.example", "Country: Sweden"]);
  const own = await follow(browser, link, "Date range");
  t.is(own.html.querySelector(".tabs [aria-current]")?.text, "Today");
  t.is(figureOn(await follow(browser, own, "Back to link")), "2");
  const less = await follow(browser, today, "Remove the filter Referrer: news.example");
  t.deepEqual(chipsOn(less), ["Country: Sweden"]);
  t.deepEqual(chipsOn(await follow(browser, today, "Clear all filters")), []);
  const january = await browser.press(today, "Apply", { from: "2026-01-01", to: "2026-01-31" });
  t.is(january.status, 422);
  t.regex(textsOn(january, "#from-error").join(), /one of the last 90 days, of which clicks can be/);
  t.deepEqual([chipsOn(january).length, typedIn(january, "from")], [2, "2026-01-01"]);
});

const INVALID: [query: string, code: string, field: string][] = [
  ["from=2026-02-01&to=2026-01-01", "invalid_from", "from"],
  ["day=2026-01-01", "unknown_field", "day"],
];

test("invalid queries for analytics are rejected, and the page names the error and shows the clicks", async (t) => {
  const { member, base, path, link, browser } = await createClickedLink();
  for (const [query, code, field] of INVALID)
    for (const address of [`${base}/analytics`, `${path}/${link.id}/analytics`]) {
      const reply = await member.api.send("GET", `${address}?${query}`);
      isProblem(t, reply, { status: 422, code, fields: [field] });
      const page = await browser.open(`${service.url}${address}?${query}`);
      t.is(page.status, 422);
      t.true(page.html.querySelector(`#${field}-error`) !== null || alertOn(page).includes(field), query);
      t.is(figureOn(page), "5");
    }
  const range = `${service.url}${base}/analytics?from=2026-01-01&to=2026-01-31`;
  const january = await browser.open(range);
  t.is(typedIn(january, "from"), "2026-01-01");
  t.is(typedIn(january, "to"), "2026-01-31");
  t.regex(january.text, /No clicks in this date range/);
  t.is(figureOn(await browser.open(`${service.url}${base}/analytics?from=&to=`)), "5");
});
