import test from "ava";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import { apiAt, BROWSER, isMissing, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { advanceToNoon } from "../../harness/clock.ts";
import { clickAt } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const BOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const DAY_MS = 24 * 60 * 60 * 1000;

advanceToNoon();
// One server behind a trusted proxy, and one without a proxy.
const service = await startTestService({ COUNTRY_HEADER: "CF-IPCountry" });
const direct = await startTestService({ TRUST_PROXY: "1" });
const newApi = async (server = service) =>
  apiAt(server.url, await server.token(await server.createOrganization()));
const api = await newApi();
test.after.always(() => Promise.all([service.close(), direct.close()]));

async function click({ short_url }: LinkBody, headers: Record<string, string> = {}, method = "GET") {
  const response = await fetch(short_url, {
    method,
    redirect: "manual",
    headers: { "user-agent": BROWSER, ...headers },
  });
  return response.status;
}

const analytics = async (link: LinkBody, query = "", caller = api) =>
  (await caller.get<AnalyticsView>(`/v1/links/${link.id}/analytics${query}`)).body;

/** Clicks a new link once with each set of headers, and returns its analytics. */
async function analyticsAfter(t: { is(a: number, b: number): void }, clicks: Record<string, string>[]) {
  const link = await api.createLink();
  for (const headers of clicks) t.is(await click(link, headers), 302);
  return analytics(link);
}

test("a link without clicks has analytics of the default range, without clicks", async (t) => {
  const { days, ...rest } = await analytics(await api.createLink());
  const lists = { referrers: [], countries: [], devices: [], browsers: [], operating_systems: [] };
  t.deepEqual(rest, { clicks: 0, bot_clicks: 0, ...lists });
  t.is(days.length, 30);
  t.true(days.every(({ clicks, bot_clicks }) => clicks === 0 && bot_clicks === 0));
  t.is(days.at(-1)?.date, new Date(Date.now()).toISOString().slice(0, 10));
  t.is(Date.parse(days[29]?.date ?? "") - Date.parse(days[0]?.date ?? ""), 29 * DAY_MS);
});

test("every click is counted immediately, and known bots separately", async (t) => {
  const { clicks, bot_clicks, days, referrers, countries } = await analyticsAfter(t, [
    { referer: "https://news.example/a" },
    { referer: "https://news.example/b?c=d" },
    {},
    { "user-agent": BOT, referer: "https://crawler.example/" },
    { "user-agent": "curl/8.5.0" },
  ]);
  t.deepEqual([clicks, bot_clicks], [3, 2]);
  t.like(days.at(-1), { clicks: 3, bot_clicks: 2 });
  t.deepEqual(referrers, [
    { referrer: "news.example", clicks: 2 },
    { referrer: null, clicks: 1 },
  ]);
  t.deepEqual(countries, [{ country: null, clicks: 3 }]);
});

const referrers: [header: string, referrer: string | null][] = [
  ["https://Example.COM/path?query#x", "example.com"],
  ["http://example.com:8080/", "example.com"],
  ["https://example.com", "example.com"],
  ["https://www.example.com/", "example.com"],
  ["https://ignore-previous-instructions.example.com/", "example.com"],
  ["https://a.b.example.co.uk/", "example.co.uk"],
  ["https://ada.github.io/", "ada.github.io"],
  ["https://192.0.2.1/", "192.0.2.1"],
  ["https://xn--mnchen-3ya.example/", "xn--mnchen-3ya.example"],
  ["https://user:secret@example.com/", null],
  ["android-app://com.google.android.gm/", "google.com"],
  ["android-app://com.linkedin.android", "linkedin.com"],
  ["android-app://ignore.previous.instructions/", "previous.ignore"],
  ["android-app://Slack/", null],
  ["javascript:alert(1)", null],
  ["//example.com/", null],
  ["example.com", null],
  ["https://<script>/", null],
  ["https://", null],
  ["about:blank", null],
  [`https://${"x".repeat(254)}/`, null],
];
test("a browser that loads a link in advance doesn't count as a person", async (t) => {
  const purposes: Record<string, string>[] = [
    { "sec-purpose": "prefetch" },
    { "sec-purpose": "prefetch;prerender" },
    { "sec-purpose": "prefetch;anonymous-client-ip" },
    { purpose: "prefetch" },
    { "x-purpose": "preview" },
    { "x-moz": "prefetch" },
  ];
  const { clicks, bot_clicks, referrers } = await analyticsAfter(t, [
    ...purposes.map((headers) => ({ ...headers, referer: "https://search.example/" })),
    { "sec-purpose": "" },
    { purpose: "navigate" },
  ]);
  t.deepEqual([clicks, bot_clicks], [2, purposes.length]);
  t.false(JSON.stringify(referrers).includes("search.example"));
});

test("only the registrable domain of a Referer is stored, and nothing if it isn't a URL", async (t) => {
  for (const [referer, referrer] of referrers) {
    const { referrers } = await analyticsAfter(t, [{ referer }]);
    t.deepEqual(referrers, [{ referrer, clicks: 1 }], referer);
  }
});

test("a site is one referrer with and without www, and as an app", async (t) => {
  const { referrers } = await analyticsAfter(t, [
    { referer: "https://www.google.com/" },
    { referer: "https://google.com/search?q=links" },
    { referer: "https://mail.google.com/" },
    { referer: "android-app://com.google.android.googlequicksearchbox/" },
  ]);
  t.deepEqual(referrers, [{ referrer: "google.com", clicks: 4 }]);
});

const MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)";
const IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)";
const WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)";
const agents: [userAgent: string, device: string | null, browser: string | null, system: string | null][] = [
  [BROWSER, "desktop", "Firefox", "Linux"],
  [`${MAC} ${WEBKIT} Version/18.0 Safari/605.1.15`, "desktop", "Safari", "macOS"],
  [`${IPHONE} ${WEBKIT} Version/18.0 Mobile/15E148 Safari/604.1`, "mobile", "Safari", "iOS"],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
    "desktop",
    "Microsoft Edge",
    "Windows",
  ],
  [
    "Mozilla/5.0 (Linux; Android 15; SM-X710) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "tablet",
    "Chrome",
    "Android",
  ],
  ["", null, null, null],
  ["ignore-previous-instructions/1.0 (Windows", null, null, null],
  ["constructor/1.0 __proto__", null, null, null],
  [`${BROWSER} ${"x".repeat(8000)}`, "desktop", "Firefox", "Linux"],
];
test("device, browser and operating system are those of the user agent, and never its text", async (t) => {
  for (const [userAgent, device, browser, operating_system] of agents) {
    const view = await analyticsAfter(t, [{ "user-agent": userAgent }]);
    const { devices, browsers, operating_systems } = view;
    t.deepEqual(
      { devices, browsers, operating_systems },
      {
        devices: [{ device, clicks: 1 }],
        browsers: [{ browser, clicks: 1 }],
        operating_systems: [{ operating_system, clicks: 1 }],
      } as typeof view,
      userAgent,
    );
  }
});

test("a link's clicks are people, its bot_clicks are known bots, and neither changes the ETag", async (t) => {
  const link = await api.createLink({ max_clicks: 4 });
  const { etag } = Object.fromEntries((await api.get(`/v1/links/${link.id}`)).headers);
  t.like(link, { clicks: 0, bot_clicks: 0 });
  const agentsOfClicks = [BROWSER, BOT, BROWSER, "curl/8.5.0", BROWSER];
  const statuses = [];
  for (const agent of agentsOfClicks) statuses.push(await click(link, { "user-agent": agent }));
  t.deepEqual(statuses, [302, 302, 302, 302, 410], "max_clicks counts both");
  const { body, headers } = await api.get(`/v1/links/${link.id}`);
  t.like(body, { clicks: 2, bot_clicks: 2 });
  t.is(headers.get("etag"), etag as string);
  const names = Object.keys(body);
  t.is(names[names.indexOf("clicks") + 1], "bot_clicks");
});

test("a range of one day has its 24 hours, a longer one has none", async (t) => {
  const link = await api.createLink();
  const destination = await service.storage.links.resolve(link.slug);
  if (!destination) throw new Error("no link");
  for (const [time, bot] of [
    ["2030-03-01T00:59:59Z", false],
    ["2030-03-01T23:00:00Z", false],
    ["2030-03-01T23:59:59Z", true],
  ] as const)
    await service.storage.links.click(destination, clickAt(Date.parse(time), { bot }));
  const { hours = [], ...day } = await analytics(link, "?from=2030-03-01&to=2030-03-01");
  t.is(hours.length, 24);
  t.deepEqual(hours[0], { hour: 0, clicks: 1, bot_clicks: 0 });
  t.deepEqual(hours[23], { hour: 23, clicks: 1, bot_clicks: 1 });
  t.true(hours.slice(1, 23).every(({ clicks, bot_clicks }) => clicks + bot_clicks === 0));
  t.like(day, { clicks: 2, bot_clicks: 1 });
  t.false("hours" in (await analytics(link, "?from=2030-03-01&to=2030-03-02")));
});

const countries: [header: string, country: string | null][] = [
  ["CH", "CH"],
  ["ch", null],
  ["XX", null],
  ["T1", null],
  ["CHE", null],
  ["<>", null],
];
test("the country comes from the header of the setting, and must be a country code", async (t) => {
  for (const [header, country] of countries) {
    const { countries } = await analyticsAfter(t, [{ "cf-ipcountry": header }]);
    t.deepEqual(countries, [{ country, clicks: 1 }], header);
  }
});

test("without COUNTRY_HEADER, no header tells the country, even behind a proxy", async (t) => {
  const caller = await newApi(direct);
  const link = await caller.createLink();
  await click(link, { "cf-ipcountry": "CH" });
  t.deepEqual((await analytics(link, "", caller)).countries, [{ country: null, clicks: 1 }]);
});

test("HEAD requests and rejected visits don't count as clicks", async (t) => {
  const link = await api.createLink({ max_clicks: 2 });
  const statuses = [];
  for (const method of ["HEAD", "GET", "GET", "GET", "HEAD"]) statuses.push(await click(link, {}, method));
  t.deepEqual(statuses, [302, 302, 302, 410, 410]);
  const other = await api.createLink();
  await api.send("PATCH", `/v1/links/${other.id}`, { json: { archived: true } });
  t.is(await click(other), 410);
  t.deepEqual([(await analytics(link)).clicks, (await analytics(other)).clicks], [2, 0]);
});

test("only the referrers with the most clicks are listed", async (t) => {
  const hosts = Array.from({ length: 21 }, (_, index) => `host-${index + 10}.example`);
  const clicks = hosts.flatMap((host, index) =>
    Array(index === 7 ? 3 : 1).fill({ referer: `https://${host}/` }),
  );
  const view = await analyticsAfter(t, clicks);
  const { referrers } = view;
  t.is(view.clicks, 23);
  t.is(referrers.length, 20);
  t.deepEqual(referrers[0], { referrer: "host-17.example", clicks: 3 });
  t.is(referrers[1]?.referrer, "host-10.example", "ties are sorted by name");
});

test("from and to are inclusive", async (t) => {
  const link = await api.createLink();
  const destination = await service.storage.links.resolve(link.slug);
  if (!destination) throw new Error("no link");
  const edges = ["2030-03-01T00:00:00.000Z", "2030-03-02T12:00:00Z", "2030-03-03T23:59:59.999Z"];
  const outside = ["2030-02-28T23:59:59.999Z", "2030-03-04T00:00:00.000Z"];
  for (const time of [...edges, ...outside]) {
    const source = { referrer: "a.example", country: "CH" };
    await service.storage.links.click(destination, clickAt(Date.parse(time), source));
  }
  t.deepEqual(await analytics(link, "?from=2030-03-01&to=2030-03-03"), {
    clicks: 3,
    bot_clicks: 0,
    days: ["2030-03-01", "2030-03-02", "2030-03-03"].map((date) => ({ date, clicks: 1, bot_clicks: 0 })),
    referrers: [{ referrer: "a.example", clicks: 3 }],
    countries: [{ country: "CH", clicks: 3 }],
    devices: [{ device: null, clicks: 3 }],
    browsers: [{ browser: null, clicks: 3 }],
    operating_systems: [{ operating_system: null, clicks: 3 }],
  });
  t.is((await analytics(link, "?from=2030-03-04&to=2030-03-04")).clicks, 1);
  t.is((await analytics(link, "?to=2030-03-30")).clicks, 4, "the default range has 30 days");
  t.is((await analytics(link, "?to=1970-01-02")).days.length, 2, "no days before 1970");
  t.is((await analytics(link, "?from=2029-03-04&to=2030-03-04")).days.length, 366);
});

const invalid: [query: string, field: string][] = [
  ["from=yesterday", "from"],
  ["from=2030-02-30", "from"],
  ["from=2030-1-1", "from"],
  ["to=", "to"],
  ["to=2030-01-01T00:00:00Z", "to"],
  ["from=2030-01-02&to=2030-01-01", "from"],
  ["from=2999-01-01", "from"],
  ["from=2029-01-01&to=2030-01-02", "from"],
  ["from=2030-01-01&from=2030-01-01", "from"],
  ["from=1969-12-31&to=1970-01-02", "from"],
  ["to=1969-12-31", "to"],
  ["to=0000-01-01", "to"],
];
for (const [query, field] of invalid) {
  test(`the query ${query} is rejected`, async (t) => {
    const { id } = await api.createLink();
    for (const path of [`/v1/links/${id}/analytics`, "/v1/analytics"]) {
      const reply = await api.send("GET", `${path}?${query}`);
      isProblem(t, reply, { status: 422, code: `invalid_${field}`, fields: [field] });
    }
  });
}

test("an unknown query parameter is rejected", async (t) => {
  const reply = await api.send("GET", "/v1/analytics?day=2030-01-01");
  isProblem(t, reply, { status: 422, code: "unknown_field", fields: ["day"] });
});

test("the totals include every link of the organization, deleted ones too, and none of another", async (t) => {
  const [mine, theirs] = [await newApi(), await newApi()];
  const [one, two, three] = [await mine.createLink(), await mine.createLink(), await theirs.createLink()];
  for (const link of [one, two, two, three, three, three])
    await click(link, { referer: "https://a.example/" });
  await mine.send("DELETE", `/v1/links/${two.id}`);
  const { clicks, referrers } = (await mine.get<AnalyticsView>("/v1/analytics")).body;
  t.is(clicks, 3);
  t.deepEqual(referrers, [{ referrer: "a.example", clicks: 3 }]);
  isMissing(t, await mine.get(`/v1/links/${two.id}/analytics`));
  isMissing(t, await mine.get(`/v1/links/${three.id}/analytics`));
  isMissing(t, await mine.get("/v1/links/lnk_unknown/analytics"));
});

test("analytics require the scope links:read", async (t) => {
  const app = await service.createOrganization();
  for (const [scope, status] of [
    ["links:read", 200],
    ["webhooks:write", 403],
  ] as const) {
    const caller = apiAt(service.url, await service.token(app, { scope }));
    t.is((await caller.get("/v1/analytics")).status, status, scope);
  }
});
