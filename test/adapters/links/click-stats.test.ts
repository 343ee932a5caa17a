import test from "ava";
import type { Knex } from "knex";
import { type Database, openDatabase } from "../../../adapters/database/index.ts";
import { createClickAnalytics } from "../../../adapters/links/click-analytics.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { Click, ClickOrigin, ResolvedLink } from "../../../resources/links/types.ts";
import { oldLinkId } from "../../harness/database/many-links.ts";
import { atOnce, clickAt, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

export const databases = "all";

const { first, second, database, url, close } = await createTestStorage();
const { knex } = database;
test.after.always(() => close());

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TODAY = Date.UTC(2030, 5, 15) / DAY_MS;
const RANGE = [TODAY - 29, TODAY] as const;

const createOrganization = async () =>
  (await first.organizations.create("Clicked", "growth", OPERATOR)).organization.id;

async function createResolvedLink(organizationId: string, slug: string): Promise<ResolvedLink> {
  await first.links.create(organizationId, OPERATOR, linkFields({ slug }));
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
  for (let start = 0; start < rows.length; start += 500)
    await knex("click_counts").insert(rows.slice(start, start + 500));
  return linkIdAt(1);
}

test("the totals of an organization are the sums of its links' counts, with two processes", async (t) => {
  const [id, other] = [await createOrganization(), await createOrganization()];
  const links = await Promise.all(
    [id, id, id, other].map((owner, index) => createResolvedLink(owner, `totals-${index}`)),
  );
  await atOnce(400, (index) =>
    (index % 2 ? first : second).links.click(
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

test("the hours of one day add up to its clicks", async (t) => {
  const id = await createOrganization();
  const link = await createResolvedLink(id, "hours");
  for (const hour of [0, 9, 9, 23]) await first.links.click(link, clickAt(TODAY * DAY_MS + hour * HOUR_MS));
  await first.links.click(link, clickAt(TODAY * DAY_MS + 9 * HOUR_MS, { bot: true }));
  const { days, hours } = await first.links.analytics(id, link.id, TODAY, TODAY);
  const byHour = hours.toSorted((one, other) => one.hour - other.hour || Number(one.bot) - Number(other.bot));
  t.deepEqual(byHour, [
    { hour: 0, bot: false, clicks: 1 },
    { hour: 9, bot: false, clicks: 2 },
    { hour: 9, bot: true, clicks: 1 },
    { hour: 23, bot: false, clicks: 1 },
  ]);
  t.is(days.find(({ bot }) => !bot)?.clicks, 4);
  t.deepEqual((await first.links.analytics(id, link.id, TODAY - 1, TODAY)).hours, []);
});

test("the number of referrers and user agents stored per organization and day is limited", async (t) => {
  const id = await createOrganization();
  const links = await Promise.all(
    Array.from({ length: 6 }, (_, index) => createResolvedLink(id, `limited-${index}`)),
  );
  await atOnce(600, (index) =>
    first.links.click(
      links[index % 6] as ResolvedLink,
      clickAt(TODAY * DAY_MS, { referrer: `host-${index}.example`, browser: `Browser ${index}` }),
    ),
  );
  const { referrers, browsers, days } = await first.links.analytics(id, undefined, TODAY, TODAY);
  t.deepEqual(referrers[0], { name: "(other)", clicks: 100 });
  t.deepEqual(browsers[0], { name: null, clicks: 100 });
  t.is(days[0]?.clicks, 600);
  for (const dimension of ["referrer", "agent"] as const) {
    const rows = await knex("click_counts").where({ organization_id: id, link_id: "", dimension });
    t.is(rows.length, 501);
  }
});

test("the links with the most clicks are those of people in the range, without deleted ones", async (t) => {
  const id = await createOrganization();
  const [often, seldom, gone, crawled] = await Promise.all(
    ["often", "seldom", "gone", "crawled"].map((slug) => createResolvedLink(id, slug)),
  );
  const click = async (link: ResolvedLink | undefined, times: number, source?: Partial<Click>) => {
    await atOnce(times, () => first.links.click(link as ResolvedLink, clickAt(TODAY * DAY_MS, source)));
  };
  await Promise.all([click(often, 5), click(seldom, 2), click(gone, 9), click(crawled, 9, { bot: true })]);
  await first.links.remove(id, gone?.id as string, OPERATOR);
  const top = await first.links.topLinks(id, ...RANGE, 5);
  t.deepEqual(
    top.map(({ link, clicks }) => [link.slug, clicks]),
    [
      ["often", 5],
      ["seldom", 2],
    ],
  );
  t.is((await first.links.topLinks(id, ...RANGE, 1)).length, 1);
  t.deepEqual(await first.links.topLinks(id, TODAY + 1, TODAY + 2, 5), []);
});

const LINKS = 50;
const PER_LINK = 480;

test("analytics read only the rows of their link, or of the sum of all, and of their days", async (t) => {
  const id = await createOrganization();
  const linkId = await storeCounts(id, LINKS, PER_LINK);
  if (engine === "postgres") await knex.raw("analyze click_counts");
  const own = openDatabase(url);
  t.teardown(() => own.close());
  const analytics = createClickAnalytics(own, async () => {});
  // A week, of 30 days.
  for (const link of [linkId, undefined]) {
    const reads = await readsOf(own, () => analytics.read(id, link, TODAY - 6, TODAY));
    t.is(reads.length, 4);
    for (const { plan, rows } of reads) {
      if (engine === "sqlite")
        t.regex(
          plan,
          /^SEARCH click_counts USING PRIMARY KEY \(organization_id=\? AND link_id=\? AND dimension=\? AND day>\? AND day<\?\)/,
        );
      else t.true(rows <= PER_LINK, `${rows} rows: ${plan}`);
    }
  }
});

type Read = { sql: string; plan: string; rows: number };

/** Runs reads, and explains each: its plan, and on the servers the number of rows that it examines. */
async function readsOf({ knex }: Database, run: () => Promise<unknown>): Promise<Read[]> {
  const queries: { sql: string; bindings: never[] }[] = [];
  const add = (query: (typeof queries)[number]) => /click_counts/.test(query.sql) && queries.push(query);
  knex.on("query", add);
  await run();
  knex.removeListener("query", add);
  const reads: Read[] = [];
  for (const { sql, bindings } of queries) reads.push({ sql, ...(await explain(knex, sql, bindings)) });
  return reads;
}

async function explain(q: Knex, sql: string, bindings: never[]): Promise<Omit<Read, "sql">> {
  if (engine === "sqlite") {
    const steps = await q.raw(`explain query plan ${sql}`, bindings);
    return { plan: steps[0].detail, rows: Number.NaN };
  }
  if (engine === "mysql") {
    const [steps] = await q.raw(`analyze ${sql}`, bindings);
    return { plan: JSON.stringify(steps), rows: Number(steps[0].r_rows) };
  }
  const literal = sql.replace(/\$(\d+)/g, "?");
  const { rows } = await q.raw(`explain (analyze, format json) ${literal}`, bindings);
  const plan = rows[0]["QUERY PLAN"][0].Plan;
  return { plan: JSON.stringify(plan), rows: examinedBy(plan) };
}

type Plan = { "Node Type": string; "Actual Rows": number; "Rows Removed by Filter"?: number; Plans?: Plan[] };

function examinedBy(plan: Plan): number {
  const own = /Scan/.test(plan["Node Type"])
    ? plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0)
    : 0;
  return own + (plan.Plans ?? []).reduce((sum, child) => sum + examinedBy(child), 0);
}

const CLICKS: Partial<Click>[] = [
  { referrer: "a.example", country: "SE", device: "mobile", browser: "Safari", operatingSystem: "iOS" },
  { referrer: "a.example", country: "DE", device: "desktop", browser: "Safari", operatingSystem: "macOS" },
  { referrer: "b.example", country: "SE", device: "desktop", browser: "Firefox", operatingSystem: "Linux" },
  { referrer: null, country: null, device: null, browser: null, operatingSystem: null },
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
  const links = [await createResolvedLink(id, "origin-0"), await createResolvedLink(id, "origin-1")] as const;
  const click = (link: ResolvedLink, day: number, source: Partial<Click>) =>
    first.links.click(link, clickAt(day * DAY_MS, source));
  for (const source of CLICKS) {
    for (const day of [TODAY - 30, TODAY - 2, TODAY]) await click(links[0], day, source);
    await click(links[1], TODAY, source);
  }
  await click(links[1], TODAY, { referrer: "b.example" });
  for (const [origin, clicks] of ORIGINS) {
    const extra = origin.value === "b.example" || origin.value === null ? 1 : 0;
    const read = async (linkId?: string) =>
      (await first.links.clicksFrom(id, linkId, origin, ...RANGE)).toSorted((a, b) => a.day - b.day);
    const own = clicks === 0 ? [] : [TODAY - 2, TODAY].map((day) => ({ day, clicks }));
    t.deepEqual(await read(links[0].id), own, JSON.stringify(origin));
    const unknown = origin.by === "referrer" ? 0 : extra;
    const all =
      clicks === 0
        ? []
        : [
            { day: TODAY - 2, clicks },
            { day: TODAY, clicks: 2 * clicks + unknown },
          ];
    t.deepEqual(await read(), all, JSON.stringify(origin));
  }
  const other = await createOrganization();
  t.deepEqual(await first.links.clicksFrom(other, undefined, { by: "country", value: "SE" }, ...RANGE), []);
});

test("the links with the most clicks of an origin are those of the organization that still exist", async (t) => {
  const id = await createOrganization();
  const origin: ClickOrigin = { by: "referrer", value: "a.example" };
  const links: ResolvedLink[] = [];
  for (const clicks of [1, 3, 2, 0]) {
    const link = await createResolvedLink(id, `top-${clicks}`);
    links.push(link);
    for (let click = 0; click < clicks; click++)
      await first.links.click(link, clickAt(TODAY * DAY_MS, { referrer: "a.example" }));
    for (let click = clicks; click < 3; click++) await first.links.click(link, clickAt(TODAY * DAY_MS));
  }
  const top = async (count: number) =>
    (await first.links.topLinks(id, ...RANGE, count, origin)).map(({ link, clicks }) => [link.slug, clicks]);
  t.deepEqual(await top(2), [
    ["top-3", 3],
    ["top-2", 2],
  ]);
  await first.links.remove(id, (links[1] as ResolvedLink).id, OPERATOR);
  t.deepEqual(await top(5), [
    ["top-2", 2],
    ["top-1", 1],
  ]);
  t.deepEqual(await first.links.topLinks(await createOrganization(), ...RANGE, 5, origin), []);
});
