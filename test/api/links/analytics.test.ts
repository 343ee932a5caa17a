import test from "ava";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import type { Click } from "../../../resources/links/types.ts";
import { BROWSER, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { advanceToNoon } from "../../harness/clock.ts";
import { clickAt } from "../../harness/database/storage.ts";

export const databases = "all";

const BOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

advanceToNoon();
const { service, api } = await shareApi({ COUNTRY_HEADER: "CF-IPCountry" });

async function click({ short_url }: LinkBody, headers: Record<string, string> = {}) {
  const init: RequestInit = { redirect: "manual", headers: { "user-agent": BROWSER, ...headers } };
  return (await fetch(short_url, init)).status;
}

const analytics = async (link: LinkBody, query = "", caller = api) =>
  (await caller.get<AnalyticsView>(`/v1/links/${link.id}/analytics${query}`)).body;

async function storeClicks({ slug }: LinkBody, times: string[], source: Partial<Click> = {}) {
  const destination = await service.storage.links.resolve(slug);
  if (!destination) throw new Error("no link");
  for (const time of times) await service.storage.links.click(destination, clickAt(Date.parse(time), source));
}

async function analyticsAfter(t: { is(a: number, b: number): void }, clicks: Record<string, string>[]) {
  const link = await api.createLink();
  for (const headers of clicks) t.is(await click(link, headers), 302);
  return analytics(link);
}

const NO_OTHERS = { destinations: [], utm_sources: [], utm_mediums: [], utm_campaigns: [] };

test("a click is counted immediately, with its referrer, country, device, browser and system, and bots separately", async (t) => {
  const { days, ...view } = await analyticsAfter(t, [
    { referer: "https://www.news.example/a", "cf-ipcountry": "CH" },
    { referer: "https://news.example/b?c=d", "cf-ipcountry": "CH" },
    {},
    { "user-agent": BOT, referer: "https://crawler.example/" },
    { "sec-purpose": "prefetch", referer: "https://search.example/" },
  ]);
  t.is(days.length, 30);
  const today = new Date(Date.now()).toISOString().slice(0, 10);
  t.deepEqual(days.at(-1), { date: today, clicks: 3, bot_clicks: 2 });
  t.true(days.slice(0, -1).every(({ clicks, bot_clicks }) => clicks + bot_clicks === 0));
  t.deepEqual(view, {
    time_zone: "UTC",
    clicks: 3,
    bot_clicks: 2,
    referrers: [
      { referrer: "news.example", clicks: 2 },
      { referrer: null, clicks: 1 },
    ],
    countries: [
      { country: "CH", clicks: 2 },
      { country: null, clicks: 1 },
    ],
    devices: [{ device: "desktop", clicks: 3 }],
    browsers: [{ browser: "Firefox", clicks: 3 }],
    operating_systems: [{ operating_system: "Linux", clicks: 3 }],
    ...NO_OTHERS,
  });
});

test("clicks are counted by the UTM parameters of where they led, and filters combine them with others", async (t) => {
  const url = "https://example.com/?utm_source=letter&utm_medium=e%00mail";
  const link = await api.createLink({ url });
  const visits: [query: string, country: string][] = [
    ["", "SE"],
    ["?utm_campaign=spring%20sale&utm_source=own", "SE"],
    [`?utm_campaign=${"😀".repeat(60)}`, "DE"],
  ];
  for (const [query, country] of visits) {
    const short_url = `${link.short_url}${query}`;
    t.is(await click({ ...link, short_url }, { "cf-ipcountry": country }), 302);
  }
  const all = await analytics(link);
  t.deepEqual(all.utm_sources, [{ utm_source: "letter", clicks: 3 }]);
  t.deepEqual(all.utm_mediums, [{ utm_medium: "email", clicks: 3 }]);
  const names = all.utm_campaigns.map(({ utm_campaign }) => utm_campaign);
  t.deepEqual(names.toSorted(), ["spring sale", "😀".repeat(50)]);
  for (const [filter, clicks] of [
    ["country=SE&utm_source=letter", 2],
    ["country=SE&utm_campaign=spring+sale&browser=Firefox", 1],
    ["country=SE&utm_campaign=", 1],
    ["country=DE&device=mobile", 0],
  ] as const) {
    const found = await analytics(link, `?${filter}`);
    t.is(found.clicks, clicks, filter);
    t.deepEqual(found.countries, clicks ? [{ country: "SE", clicks }] : []);
  }
  const old = await api.get(`/v1/links/${link.id}/analytics?from=2026-01-01&to=2026-01-31&country=SE`);
  isProblem(t, old, { status: 422, code: "invalid_from", fields: ["from"] });
});

test("a range of one day has its 24 hours, a longer one has none", async (t) => {
  const link = await api.createLink();
  await storeClicks(link, ["2030-03-01T00:59:59Z", "2030-03-01T23:00:00Z"]);
  await storeClicks(link, ["2030-03-01T23:59:59Z"], { bot: true });
  const { hours = [], ...day } = await analytics(link, "?from=2030-03-01&to=2030-03-01");
  t.is(hours.length, 24);
  t.deepEqual(hours[0], { hour: 0, clicks: 1, bot_clicks: 0 });
  t.deepEqual(hours[23], { hour: 23, clicks: 1, bot_clicks: 1 });
  t.true(hours.slice(1, 23).every(({ clicks, bot_clicks }) => clicks + bot_clicks === 0));
  t.like(day, { clicks: 2, bot_clicks: 1 });
  t.false("hours" in (await analytics(link, "?from=2030-03-01&to=2030-03-02")));
});
