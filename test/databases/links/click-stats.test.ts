import test from "ava";
import type { Engine } from "../../../adapters/database/engine.ts";
import { createClickAnalytics } from "../../../adapters/links/click-analytics.ts";
import type { Click, ClickOrigin, ResolvedLink } from "../../../resources/links/types.ts";
import { oldLinkId } from "../../harness/database/many-links.ts";
import { atOnce, clickAt, createTestStorage, OPERATOR } from "../../harness/database/storage.ts";
import { engine, inspect } from "../../harness/database/test-database.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, either, knex, url, createOrganization } = storage;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TODAY = Date.UTC(2030, 5, 15) / DAY_MS;
const RANGE = [TODAY - 29, TODAY] as const;

async function createResolvedLink(organizationId: string): Promise<ResolvedLink> {
  const { slug } = await storage.createLink(organizationId);
  return (await first.links.resolve(slug)) as ResolvedLink;
}

/** Returns the counts of an organization by dimension, day and name, and what those of its links add up to. */
async function countsOf(organizationId: string) {
  const rows = await knex("click_counts").where({ organization_id: organizationId });
  const [totals, own] = [rows.filter(({ link_id }) => link_id === ""), rows.filter(({ link_id }) => link_id)];
  const expected = new Map<string, number>();
  const add = (key: string, clicks: number) => expected.set(key, (expected.get(key) ?? 0) + clicks);
  for (const { link_id, dimension, day, name, clicks } of own) {
    add(`${dimension} ${day} ${name}`, clicks);
    if (dimension === "clicks") add(`link ${day} ${link_id}`, clicks);
  }
  return {
    totals: totals.map(({ dimension, day, name, clicks }) => [`${dimension} ${day} ${name}`, clicks]).sort(),
    expected: [...expected].sort(),
  };
}

const DIMENSIONS = ["clicks", "referrer", "country", "agent"] as const;

/** Stores as many rows of each link, and of the sum of all. Returns the ID of one of the links. */
async function storeCounts(organizationId: string, links: number, perLink: number): Promise<string> {
  const linkIdAt = (link: number) => (link === 0 ? "" : oldLinkId(link) + organizationId.slice(-6));
  const rows = Array.from({ length: (links + 1) * perLink }, (_, index) => ({
    organization_id: organizationId,
    link_id: linkIdAt(Math.floor(index / perLink)),
    dimension: DIMENSIONS[index % 4] as (typeof DIMENSIONS)[number],
    day: TODAY - (Math.floor(index / 4) % 30),
    name: `${Math.floor((index % perLink) / 120)}`,
    clicks: 1 + (index % 5),
  }));
  await knex.batchInsert("click_counts", rows, 500);
  return linkIdAt(1);
}

test("the totals of an organization are the sums of its links' counts, with two processes", async (t) => {
  const [id, other] = [await createOrganization(), await createOrganization()];
  const links = await Promise.all([id, id, id, other].map((owner) => createResolvedLink(owner)));
  await atOnce(400, (index) =>
    either(index).links.click(
      links[index % 4] as ResolvedLink,
      clickAt((TODAY - (index % 3)) * DAY_MS + (index % 24) * HOUR_MS, {
        referrer: index % 5 ? `site-${index % 5}.example` : null,
        country: index % 7 ? "CH" : null,
        device: index % 3 ? "mobile" : "desktop",
        browser: index % 13 ? "Firefox" : null,
        bot: index % 11 === 0,
      }),
    ),
  );
  // Reading stores what each process has collected.
  await second.links.analytics(id, undefined, ...RANGE);
  const { days, referrers, devices, browsers } = await first.links.analytics(id, undefined, ...RANGE);
  const sumOf = (rows: { clicks: number }[]) => rows.reduce((sum, { clicks }) => sum + clicks, 0);
  t.is(sumOf(days), 300);
  t.is(referrers.length, 5);
  const people = sumOf(days.filter(({ bot }) => !bot));
  for (const list of [referrers, devices, browsers]) t.is(sumOf(list), people);
  t.deepEqual(devices.map(({ name }) => name).sort(), ["desktop", "mobile"]);
  t.deepEqual(browsers.map(({ name }) => name).sort(), ["Firefox", null]);
  const { totals, expected } = await countsOf(id);
  t.deepEqual(totals, expected);
});

test("the number of referrers and user agents stored per day is limited, of one link and of all", async (t) => {
  const id = await createOrganization();
  const links = (await atOnce(5, () => createResolvedLink(id))) as [ResolvedLink, ...ResolvedLink[]];
  await atOnce(600, (index) =>
    first.links.click(
      links[index % 5] as ResolvedLink,
      clickAt(TODAY * DAY_MS, { referrer: `host-${index}.example`, browser: `Browser ${index}` }),
    ),
  );
  for (const [linkId, clicks, others, stored] of [
    [links[0].id, 120, 20, 101],
    [undefined, 600, 100, 501],
  ] as const) {
    const { referrers, browsers, days } = await first.links.analytics(id, linkId, TODAY, TODAY);
    t.deepEqual(referrers[0], { name: "(other)", clicks: others });
    t.deepEqual(browsers[0], { name: null, clicks: others });
    t.is(days[0]?.clicks, clicks);
    for (const dimension of ["referrer", "agent"] as const) {
      const rows = knex("click_counts").where({ organization_id: id, link_id: linkId ?? "", dimension });
      t.is((await rows).length, stored);
    }
  }
});

test("the links with the most clicks, of any origin or of one, are those of people in the range that still exist", async (t) => {
  const id = await createOrganization();
  const [often, seldom, gone, crawled] = await atOnce(4, () => createResolvedLink(id));
  const click = (link: ResolvedLink | undefined, times: number, source: Partial<Click> = {}) =>
    atOnce(times, () => first.links.click(link as ResolvedLink, clickAt(TODAY * DAY_MS, source)));
  const fromA = { referrer: "a.example" };
  await Promise.all([
    click(often, 5),
    click(often, 1, fromA),
    click(seldom, 3, fromA),
    click(gone, 9, fromA),
    click(crawled, 9, { ...fromA, bot: true }),
  ]);
  await first.links.remove(id, gone?.id as string, OPERATOR);
  const topOf = async (origin?: ClickOrigin, count = 5, owner = id) =>
    (await first.links.topLinks(owner, ...RANGE, count, origin)).map(({ link, clicks }) => [link.id, clicks]);
  const origin: ClickOrigin = { by: "referrer", value: "a.example" };
  const other = await createOrganization();
  for (const [by, ...expected] of [
    [undefined, [often?.id, 6], [seldom?.id, 3]],
    [origin, [seldom?.id, 3], [often?.id, 1]],
  ] as const) {
    t.deepEqual<unknown, unknown>(await topOf(by), expected);
    t.deepEqual<unknown, unknown>(await topOf(by, 1), expected.slice(0, 1));
    t.deepEqual(await topOf(by, 5, other), []);
  }
  t.deepEqual(await first.links.topLinks(id, TODAY + 1, TODAY + 2, 5), []);
});

const LINKS = 50;
const PER_LINK = 480;

// By the whole key, with the days as a range.
const INDEXED = {
  sqlite: /USING PRIMARY KEY \(organization_id=\? AND link_id=\? AND dimension=\? AND day>\? AND day<\?\)/,
  postgres: /"Index Cond":"(?=[^"]*organization_id)(?=[^"]*link_id)(?=[^"]*dimension)[^"]*day >/,
  mysql: /"used_key_parts":\["organization_id","link_id","dimension","day"\]/,
}[engine as Engine];

test("analytics read only the rows of their link, or of the sum of all, and of their days", async (t) => {
  const id = await createOrganization();
  const linkId = await storeCounts(id, LINKS, PER_LINK);
  if (engine === "postgres") await knex.raw("analyze click_counts");
  const own = inspect(url);
  const queries: Query[] = [];
  own.knex.on("query", (query) => /click_counts/.test(query.sql) && queries.push(query));
  const analytics = createClickAnalytics(own, async () => {});
  // A week, of 30 days.
  for (const link of [linkId, undefined]) await analytics.read(id, link, TODAY - 6, TODAY);
  t.is(queries.length, 10);
  for (const query of queries) t.regex(await explain(query), INDEXED);
});

type Query = { sql: string; bindings: never[] };

async function explain({ sql, bindings }: Query): Promise<string> {
  if (engine === "sqlite") return JSON.stringify(await knex.raw(`explain query plan ${sql}`, bindings));
  if (engine === "postgres") {
    const { rows } = await knex.raw(`explain (format json) ${sql.replace(/\$(\d+)/g, "?")}`, bindings);
    return JSON.stringify(rows[0]["QUERY PLAN"]);
  }
  const [[{ EXPLAIN: plan }]] = await knex.raw(`explain format = json ${sql}`, bindings);
  return JSON.stringify(JSON.parse(plan));
}

const [SAFARI, FIREFOX] = [{ browser: "Safari" }, { browser: "Firefox", operatingSystem: "Linux" }];
const CLICKS: Partial<Click>[] = [
  { ...SAFARI, referrer: "a.example", country: "SE", device: "mobile", operatingSystem: "iOS" },
  { ...SAFARI, referrer: "a.example", country: "DE", device: "desktop", operatingSystem: "macOS" },
  { ...FIREFOX, referrer: "b.example", country: "SE", device: "desktop" },
  {},
  { referrer: "a.example", country: "SE", bot: true },
];
const ORIGINS: [origin: ClickOrigin, clicks: number][] = [
  [{ by: "referrer", value: "a.example" }, 2],
  [{ by: "referrer", value: null }, 1],
  [{ by: "referrer", value: "mobile" }, 0],
  [{ by: "country", value: "SE" }, 2],
  [{ by: "country", value: null }, 1],
  [{ by: "device", value: "desktop" }, 2],
  [{ by: "device", value: "Safari" }, 0],
  [{ by: "browser", value: "Safari" }, 2],
  [{ by: "browser", value: null }, 1],
  [{ by: "operating_system", value: "Linux" }, 1],
  [{ by: "operating_system", value: "%" }, 0],
];

test("the clicks of one origin are counted by day, of one link and of all, without bots and other days", async (t) => {
  const id = await createOrganization();
  const links = [await createResolvedLink(id), await createResolvedLink(id)] as const;
  for (const source of CLICKS) {
    for (const day of [TODAY - 30, TODAY - 2, TODAY])
      await first.links.click(links[0], clickAt(day * DAY_MS, source));
    await first.links.click(links[1], clickAt(TODAY * DAY_MS, source));
  }
  for (const [origin, clicks] of ORIGINS) {
    const read = async (linkId?: string) =>
      (await first.links.clicksFrom(id, linkId, origin, ...RANGE)).toSorted((a, b) => a.day - b.day);
    const days = (today: number) =>
      [
        { day: TODAY - 2, clicks },
        { day: TODAY, clicks: today },
      ].filter((day) => day.clicks > 0);
    t.deepEqual(await read(links[0].id), days(clicks), JSON.stringify(origin));
    t.deepEqual(await read(), days(2 * clicks), JSON.stringify(origin));
  }
  const other = await createOrganization();
  t.deepEqual(await first.links.clicksFrom(other, undefined, { by: "country", value: "SE" }, ...RANGE), []);
});
