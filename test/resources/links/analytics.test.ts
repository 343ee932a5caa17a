import test from "ava";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import { apiAt, isMissing, isProblem, type LinkBody } from "../../harness/api.ts";
import { startTestService } from "../../harness/service.ts";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0";
const BOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const DAY_MS = 24 * 60 * 60 * 1000;

// One behind a proxy, one that is reached directly.
const service = await startTestService({ TRUST_PROXY: "1" });
const direct = await startTestService();
const newApi = async (on = service) => apiAt(on.url, await on.token(await on.createOrganization()));
const api = await newApi();
test.after.always(() => Promise.all([service.close(), direct.close()]));

async function click({ short_url }: LinkBody, headers: Record<string, string> = {}, method = "GET") {
  const answer = await fetch(short_url, {
    method,
    redirect: "manual",
    headers: { "user-agent": BROWSER, ...headers },
  });
  return answer.status;
}

const analytics = async (link: LinkBody, query = "", caller = api) =>
  (await caller.get<AnalyticsView>(`/v1/links/${link.id}/analytics${query}`)).body;

/** Clicks a link of one's own for each set of headers, and tells what the analytics make of them. */
async function analyticsOf(t: { is(a: number, b: number): void }, clicks: Record<string, string>[]) {
  const link = await api.createLink();
  for (const headers of clicks) t.is(await click(link, headers), 302);
  return analytics(link);
}

test("a link that nobody followed has 30 days without a click", async (t) => {
  const { days, ...rest } = await analytics(await api.createLink());
  t.deepEqual(rest, { total: 0, bots: 0, referrers: [], countries: [] });
  t.is(days.length, 30);
  t.true(days.every(({ clicks, bots }) => clicks === 0 && bots === 0));
  t.is(days.at(-1)?.date, new Date().toISOString().slice(0, 10));
  t.is(Date.parse(days[29]?.date ?? "") - Date.parse(days[0]?.date ?? ""), 29 * DAY_MS);
});

test("every click is there at once, those of known bots apart", async (t) => {
  const { total, bots, days, referrers, countries } = await analyticsOf(t, [
    { referer: "https://news.example/a" },
    { referer: "https://news.example/b?c=d" },
    {},
    { "user-agent": BOT, referer: "https://crawler.example/" },
    { "user-agent": "curl/8.5.0" },
  ]);
  t.deepEqual([total, bots], [3, 2]);
  t.like(days.at(-1), { clicks: 3, bots: 2 });
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
  ["https://www.example.com/", "www.example.com"],
  ["https://xn--mnchen-3ya.example/", "xn--mnchen-3ya.example"],
  ["https://user:secret@example.com/", null],
  ["android-app://com.example/", null],
  ["javascript:alert(1)", null],
  ["//example.com/", null],
  ["example.com", null],
  ["https://<script>/", null],
  ["https://", null],
  ["about:blank", null],
  [`https://${"x".repeat(254)}/`, null],
];
test("of a Referer the host is kept, and nothing of what is no address", async (t) => {
  for (const [referer, referrer] of referrers) {
    const { referrers } = await analyticsOf(t, [{ referer }]);
    t.deepEqual(referrers, [{ referrer, clicks: 1 }], referer);
  }
});

const countries: [header: string, country: string | null][] = [
  ["CH", "CH"],
  ["ch", null],
  ["XX", null],
  ["T1", null],
  ["CHE", null],
  ["<>", null],
];
test("a country is what the proxy in front says, if it is one", async (t) => {
  for (const [header, country] of countries) {
    const { countries } = await analyticsOf(t, [{ "cf-ipcountry": header }]);
    t.deepEqual(countries, [{ country, clicks: 1 }], header);
  }
});

test("without a proxy in front nobody's word for a country is taken", async (t) => {
  const caller = await newApi(direct);
  const link = await caller.createLink();
  await click(link, { "cf-ipcountry": "CH" });
  t.deepEqual((await analytics(link, "", caller)).countries, [{ country: null, clicks: 1 }]);
});

test("what is no click is in no analytics", async (t) => {
  const link = await api.createLink({ max_clicks: 2 });
  const statuses = [];
  for (const method of ["HEAD", "GET", "GET", "GET", "HEAD"]) statuses.push(await click(link, {}, method));
  t.deepEqual(statuses, [302, 302, 302, 410, 410]);
  const other = await api.createLink();
  await api.send("PATCH", `/v1/links/${other.id}`, { json: { archived: true } });
  t.is(await click(other), 410);
  t.deepEqual([(await analytics(link)).total, (await analytics(other)).total], [2, 0]);
});

test("the 20 most frequent referrers are shown", async (t) => {
  const hosts = Array.from({ length: 21 }, (_, index) => `host-${index + 10}.example`);
  const clicks = hosts.flatMap((host, index) =>
    Array(index === 7 ? 3 : 1).fill({ referer: `https://${host}/` }),
  );
  const { total, referrers } = await analyticsOf(t, clicks);
  t.is(total, 23);
  t.is(referrers.length, 20);
  t.deepEqual(referrers[0], { referrer: "host-17.example", clicks: 3 });
  t.is(referrers[1]?.referrer, "host-10.example", "equal ones by name");
});

test("from and to are the first and the last day", async (t) => {
  const link = await api.createLink();
  const destination = await service.storage.links.resolve(link.slug);
  if (!destination) throw new Error("no link");
  const edges = ["2030-03-01T00:00:00.000Z", "2030-03-02T12:00:00Z", "2030-03-03T23:59:59.999Z"];
  const outside = ["2030-02-28T23:59:59.999Z", "2030-03-04T00:00:00.000Z"];
  for (const time of [...edges, ...outside]) {
    const visit = { referrer: "a.example", country: "CH", bot: false };
    await service.storage.links.click(destination, { at: Date.parse(time), ...visit });
  }
  t.deepEqual(await analytics(link, "?from=2030-03-01&to=2030-03-03"), {
    total: 3,
    bots: 0,
    days: ["2030-03-01", "2030-03-02", "2030-03-03"].map((date) => ({ date, clicks: 1, bots: 0 })),
    referrers: [{ referrer: "a.example", clicks: 3 }],
    countries: [{ country: "CH", clicks: 3 }],
  });
  t.is((await analytics(link, "?from=2030-03-04&to=2030-03-04")).total, 1);
  t.is((await analytics(link, "?to=2030-03-30")).total, 4, "30 days, from the first of March on");
  t.is((await analytics(link, "?to=1970-01-02")).days.length, 2, "there are no days before");
  t.is((await analytics(link, "?from=2029-03-04&to=2030-03-04")).days.length, 366);
});

const wrong: [query: string, field: string][] = [
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
for (const [query, field] of wrong) {
  test(`the query ${query} is refused`, async (t) => {
    const { id } = await api.createLink();
    for (const path of [`/v1/links/${id}/analytics`, "/v1/analytics"]) {
      const reply = await api.send("GET", `${path}?${query}`);
      isProblem(t, reply, { status: 422, code: `invalid_${field}`, fields: [field] });
    }
  });
}

test("a word of the query that is unknown is refused", async (t) => {
  const reply = await api.send("GET", "/v1/analytics?day=2030-01-01");
  isProblem(t, reply, { status: 422, code: "unknown_field", fields: ["day"] });
});

test("the totals are those of all links of the organization, deleted ones included, and of no other one", async (t) => {
  const [mine, theirs] = [await newApi(), await newApi()];
  const [one, two, three] = [await mine.createLink(), await mine.createLink(), await theirs.createLink()];
  for (const link of [one, two, two, three, three, three])
    await click(link, { referer: "https://a.example/" });
  await mine.send("DELETE", `/v1/links/${two.id}`);
  const { total, referrers } = (await mine.get<AnalyticsView>("/v1/analytics")).body;
  t.is(total, 3);
  t.deepEqual(referrers, [{ referrer: "a.example", clicks: 3 }]);
  isMissing(t, await mine.get(`/v1/links/${two.id}/analytics`));
  isMissing(t, await mine.get(`/v1/links/${three.id}/analytics`));
  isMissing(t, await mine.get("/v1/links/lnk_unknown/analytics"));
});

test("the scope links:read opens them, that of webhooks does not", async (t) => {
  const app = await service.createOrganization();
  for (const [scope, status] of [
    ["links:read", 200],
    ["webhooks:write", 403],
  ] as const) {
    const caller = apiAt(service.url, await service.token(app, { scope }));
    t.is((await caller.get("/v1/analytics")).status, status);
  }
});
