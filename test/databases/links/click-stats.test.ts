import test from "ava";
import type { Engine } from "../../../adapters/database/engine.ts";
import { createClickAnalytics } from "../../../adapters/links/click-analytics.ts";
import type { Click, ClickFilter, ResolvedLink } from "../../../resources/links/types.ts";
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

test("the number of referrers, user agents and sources stored per day is limited, of one link and of all", async (t) => {
  const id = await createOrganization();
  const links = (await atOnce(5, () => createResolvedLink(id))) as [ResolvedLink, ...ResolvedLink[]];
  await atOnce(1100, (index) =>
    first.links.click(
      links[index % 5] as ResolvedLink,
      clickAt(TODAY * DAY_MS, { referrer: `host-${index}.example`, browser: `Browser ${index}` }),
    ),
  );
  for (const [linkId, clicks, others, stored, sources] of [
    [links[0].id, 220, 120, 101, 200],
    [undefined, 1100, 600, 501, 1000],
  ] as const) {
    const { referrers, browsers, days } = await first.links.analytics(id, linkId, TODAY, TODAY);
    t.deepEqual(referrers[0], { name: "(other)", clicks: others });
    const tied = referrers.slice(1).map(({ name }) => name as string);
    t.deepEqual([tied, tied.length], [tied.toSorted(), 19]);
    t.deepEqual(browsers[0], { name: null, clicks: others });
    t.is(days[0]?.clicks, clicks);
    for (const dimension of ["referrer", "agent"] as const) {
      const rows = knex("click_counts").where({ organization_id: id, link_id: linkId ?? "", dimension });
      t.is((await rows).length, stored);
    }
    const filtered = await first.links.analytics(id, linkId, TODAY, TODAY, { country: "" });
    t.deepEqual(filtered.referrers[0], { name: "(other)", clicks: clicks - sources });
    const details = knex("click_details").where({ organization_id: id, link_id: linkId ?? "" });
    t.is((await details).length, sources + 1);
    t.is((await knex("click_sources").where({ organization_id: id })).length, 1001);
  }
});

test("the links with the most clicks, of all or of those that match a filter, are those of people in the range that still exist", async (t) => {
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
  t.is(await first.links.countClicks(id, undefined, ...RANGE), 18, "of deleted links, too");
  const topOf = async (filter?: ClickFilter, count = 5, owner = id) =>
    (await first.links.topLinks(owner, ...RANGE, count, filter)).map(({ link, clicks }) => [link.id, clicks]);
  const other = await createOrganization();
  for (const [by, ...expected] of [
    [undefined, [often?.id, 6], [seldom?.id, 3]],
    [{ referrer: "a.example", country: "" }, [seldom?.id, 3], [often?.id, 1]],
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
  t.is(queries.length, 16);
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
  {
    ...SAFARI,
    referrer: "a.example",
    country: "SE",
    device: "mobile",
    operatingSystem: "iOS",
    utmSource: "letter",
    utmMedium: "e\u{1f4e7}mail ",
  },
  { ...SAFARI, referrer: "a.example", country: "DE", device: "desktop", operatingSystem: "macOS" },
  {
    ...FIREFOX,
    referrer: "b.example",
    country: "SE",
    device: "desktop",
    destination: "https://example.com/",
  },
  {},
  { referrer: "a.example", country: "SE", bot: true },
];
const FILTERS: [filter: ClickFilter, people: number, bots: number][] = [
  [{ referrer: "a.example" }, 2, 1],
  [{ referrer: "" }, 1, 0],
  [{ referrer: "mobile" }, 0, 0],
  [{ country: "SE" }, 2, 1],
  [{ country: "SE", device: "mobile" }, 1, 0],
  [{ country: "SE", browser: "", referrer: "a.example" }, 0, 1],
  [{ device: "desktop", operating_system: "Linux" }, 1, 0],
  [{ operating_system: "%" }, 0, 0],
  [{ utm_source: "letter", utm_medium: "e\u{1f4e7}mail ", utm_campaign: "" }, 1, 0],
  [{ utm_source: "Letter" }, 0, 0],
  [{ destination: "https://example.com/" }, 1, 0],
];

test("clicks are counted by the days and hours of their organization's time zone, from the change on", async (t) => {
  const id = await createOrganization();
  const before = await createResolvedLink(id);
  await first.links.click(before, clickAt(TODAY * DAY_MS + 18 * HOUR_MS, { country: "IN" }));
  await first.organizationSettings.change(id, { timeZone: "Asia/Kolkata" }, OPERATOR);
  const link = (await second.links.resolve(before.slug)) as ResolvedLink;
  const half = HOUR_MS / 2;
  for (const at of [18 * HOUR_MS, 18 * HOUR_MS + half - 1, 18 * HOUR_MS + half])
    await second.links.click(link, clickAt(TODAY * DAY_MS + at, { country: "IN" }));
  await first.links.analytics(id, undefined, TODAY, TODAY);
  for (const filter of [{}, { country: "IN" }])
    for (const linkId of [link.id, undefined]) {
      const read = async (day: number) => {
        const { days, hours } = await second.links.analytics(id, linkId, day, day, filter);
        const clicked = hours.filter(({ clicks }) => clicks > 0).map(({ hour, clicks }) => [hour, clicks]);
        return [days[0]?.clicks, clicked.sort()];
      };
      t.deepEqual(await read(TODAY), [
        3,
        [
          [18, 1],
          [23, 2],
        ],
      ]);
      t.deepEqual(await read(TODAY + 1), [1, [[0, 1]]]);
    }
  t.is(await second.links.countClicks(id, undefined, TODAY, TODAY + 1), 4);
  t.is(await second.links.countClicks(id, link.id, TODAY, TODAY, { country: "IN" }), 3);
});

test("clicks that match a filter are counted by day, hour and name, of one link and of all", async (t) => {
  const id = await createOrganization();
  const links = [await createResolvedLink(id), await createResolvedLink(id)] as const;
  for (const source of CLICKS) {
    for (const day of [TODAY - 30, TODAY - 2, TODAY])
      for (const hour of [0, 23])
        await first.links.click(links[0], clickAt(day * DAY_MS + hour * HOUR_MS, source));
    await second.links.click(links[1], clickAt(TODAY * DAY_MS, source));
  }
  const read = (linkId: string | undefined, from: number, filter: ClickFilter) =>
    first.links.analytics(id, linkId, from, TODAY, filter);
  await second.links.analytics(id, undefined, TODAY, TODAY);
  for (const [filter, people, bots] of FILTERS) {
    const sumOf = (rows: { clicks: number }[]) => rows.reduce((sum, { clicks }) => sum + clicks, 0);
    for (const [linkId, ofDay, today] of [
      [links[0].id, 2, 2],
      [undefined, 2, 3],
    ] as const) {
      const what = JSON.stringify([linkId, filter]);
      const expected = [false, true].flatMap((bot) =>
        [TODAY - 2, TODAY].map((day) => {
          const clicks = (bot ? bots : people) * (day === TODAY ? today : ofDay);
          return { day, bot, clicks };
        }),
      );
      const all = await read(linkId, RANGE[0], filter);
      const days = all.days.toSorted((a, b) => Number(a.bot) - Number(b.bot) || a.day - b.day);
      t.deepEqual(
        days,
        expected.filter(({ clicks }) => clicks > 0),
        what,
      );
      for (const list of [all.referrers, all.countries, all.devices, all.browsers, all.operating_systems])
        t.is(sumOf(list), people * (ofDay + today), what);
      const { hours } = await read(linkId, TODAY, filter);
      t.is(sumOf(hours.filter(({ hour, bot }) => hour === 0 && !bot)), people * (today - 1), what);
      t.is(sumOf(hours.filter(({ hour, bot }) => hour === 23 && bot)), bots, what);
    }
  }
  const { utm_sources, utm_mediums, utm_campaigns, destinations } = await read(undefined, TODAY, {
    country: "SE",
  });
  t.deepEqual(utm_sources, [{ name: "letter", clicks: 3 }]);
  t.deepEqual(utm_mediums, [{ name: "e\u{1f4e7}mail ", clicks: 3 }]);
  t.deepEqual([utm_campaigns, destinations], [[], [{ name: "https://example.com/", clicks: 3 }]]);
  const { utm_sources: unfiltered } = await first.links.analytics(id, undefined, TODAY, TODAY);
  t.deepEqual(unfiltered, utm_sources);
  const other = await createOrganization();
  t.deepEqual((await first.links.analytics(other, undefined, ...RANGE, { country: "SE" })).days, []);
});
