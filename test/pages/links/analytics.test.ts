import test from "ava";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import { apiAt, BROWSER, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { alertOn, follow, linksInBrowser, textsOn, typedIn } from "../../harness/clients/dashboard.ts";
import { tokensFor } from "../../harness/clients/oauth.ts";
import type { Page } from "../../harness/clients/test-browser.ts";
import { advanceToNoon } from "../../harness/clock.ts";
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

test("the JSON analytics of a link, and of all links, are those of the API, or filtered have what is known", async (t) => {
  const { member, base, path, link, create, organization } = await createClickedLink();
  await click(await create());
  const app = await service.createOrganization();
  const tokens = await tokensFor(service, app, member, { organizationId: organization.id });
  const api = apiAt(service.url, tokens.access_token);
  const analytics = async (address: string) => (await member.api.get<AnalyticsView>(address)).body;
  for (const [address, clicks] of [
    [`/links/${link.id}/analytics`, 5],
    ["/analytics", 6],
    ["/analytics?from=2026-01-01&to=2026-01-31", 0],
  ] as const) {
    const shown = await analytics(base + address);
    t.deepEqual(shown, (await api.get<AnalyticsView>(`/v1${address}`)).body);
    t.is(shown.clicks, clicks);
  }
  const query = `by=country&value=SE&from=${TODAY}&to=${TODAY}`;
  const filtered = { by: "country", value: "SE", clicks: 2, days: [{ date: TODAY, clicks: 2 }] };
  for (const address of [`${base}/analytics`, `${path}/${link.id}/analytics`])
    t.deepEqual((await analytics(`${address}?${query}`)) as object, filtered);
});

test("the page of a link shows its clicks and their sources, and each preset marks itself", async (t) => {
  const { browser, open, link } = await createClickedLink();
  const shown = await open(`/${link.id}`);
  t.is(shown.html.querySelectorAll("svg[role=img] g").length, 30);
  t.deepEqual(textsOn(shown, '[data-head="Country"]'), ["Unknown", "Sweden", "Germany"]);
  for (const [name, bars, unit] of [
    ["Today", 24, "hour"],
    ["7 days", 7, "day"],
    ["30 days", 30, "day"],
    ["90 days", 90, "day"],
  ] as const) {
    const shown = await follow(browser, await open(`/${link.id}/analytics`), name);
    t.deepEqual(textsOn(shown, ".tabs [aria-current]"), [name]);
    t.is(shown.html.querySelectorAll("svg[role=img] g").length, bars);
    t.truthy(shown.html.querySelector(`svg[role=img][aria-label^="Clicks per ${unit}, "]`));
  }
  const today = await open(`/${link.id}/analytics?from=${TODAY}`);
  t.regex(today.text, /0 clicks yesterday\./);
});

const figureOn = (page: Page) => page.html.querySelector("p strong.figure")?.text;
const chipOn = (page: Page) => page.html.querySelector(".filter .badge")?.text;

test("the filter is kept with another date range, of which a single day has no chart", async (t) => {
  const { browser, base, create } = await createClickedLink();
  await click(await create({ title: "Once" }), { referer: "https://news.example/" });
  const page = await browser.open(`${service.url}${base}/analytics?by=referrer&value=news.example`);
  t.is(figureOn(page), "4");
  t.deepEqual(textsOn(page, '[data-head="Link"]'), ["Followed", "Once"]);
  t.deepEqual(textsOn(page, '[data-head="Share"]'), ["75%", "25%"]);
  const today = await follow(browser, page, "Today");
  t.is(chipOn(today), "Referrer: news.example");
  t.is(figureOn(today), "4");
  t.is(today.html.querySelector("svg[role=img]"), null);
  t.regex(today.text, /0 clicks yesterday\./);
  const january = await browser.press(today, "Apply", { from: "2026-01-01", to: "2026-01-31" });
  t.is(chipOn(january), "Referrer: news.example");
  t.is(figureOn(january), "0");
});

const INVALID: [query: string, code: string, field: string][] = [
  ["from=2026-02-01&to=2026-01-01", "invalid_from", "from"],
  ["day=2026-01-01", "unknown_field", "day"],
  ["by=color&value=red", "invalid_by", "by"],
  ["value=news.example", "invalid_by", "by"],
  ["by=referrer&value=%00", "invalid_value", "value"],
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
