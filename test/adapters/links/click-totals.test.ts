import test from "ava";
import type { Knex } from "knex";
import { type Database, openDatabase } from "../../../adapters/database/index.ts";
import { addToTotals, createClickStats } from "../../../adapters/links/click-stats.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { ResolvedLink } from "../../../resources/links/types.ts";
import { oldLinkId } from "../../harness/database/many-links.ts";
import { atOnce, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

export const databases = "all";

const { first, second, database, url, close } = await createTestStorage();
const { knex } = database;
test.after.always(() => close());

const DAY_MS = 86_400_000;
const TODAY = Date.UTC(2030, 5, 15) / DAY_MS;
const RANGE = [TODAY - 29, TODAY] as const;

const createOrganization = async () =>
  (await first.organizations.create("Clicked", "growth", OPERATOR)).organization.id;

async function createResolvedLink(organizationId: string, slug: string): Promise<ResolvedLink> {
  await first.links.create(organizationId, OPERATOR, linkFields({ slug }));
  return (await first.links.resolve(slug)) as ResolvedLink;
}

/** Returns an organization's totals by dimension, day and name, and what its statistics add up to. */
async function totalsOf(organizationId: string) {
  const rows = await knex("click_totals").where({ organization_id: organizationId });
  const expected = new Map<string, number>();
  for (const { day, bot, referrer, country, clicks } of await knex("click_stats").where({
    organization_id: organizationId,
  })) {
    const keys = bot
      ? [`bots ${day} `]
      : [`clicks ${day} `, `referrer ${day} ${referrer}`, `country ${day} ${country}`];
    for (const key of keys) expected.set(key, (expected.get(key) ?? 0) + clicks);
  }
  return {
    totals: rows.map(({ dimension, day, name, clicks }) => [`${dimension} ${day} ${name}`, clicks]).sort(),
    expected: [...expected].sort(),
  };
}

/** Stores statistics and their totals. Returns the ID of one of the links. */
async function storeStatistics(organizationId: string, links: number, perLink: number): Promise<string> {
  const rows = Array.from({ length: links * perLink }, (_, index) => ({
    link_id: oldLinkId(Math.floor(index / perLink)) + organizationId.slice(-6),
    day: TODAY - (index % 30),
    referrer: `site-${index % 7}.example`,
    country: ["CH", "SE", ""][index % 3] as string,
    bot: index % 11 === 0,
    organization_id: organizationId,
    clicks: 1 + (index % 5),
  }));
  for (let start = 0; start < rows.length; start += 500)
    await knex("click_stats").insert(rows.slice(start, start + 500));
  await database.transaction((trx) => addToTotals(trx, database.engine, rows));
  return rows[0]?.link_id as string;
}

test("the totals of an organization are the sums of its statistics, with two processes", async (t) => {
  const [id, other] = [await createOrganization(), await createOrganization()];
  const links = await Promise.all(
    [id, id, id, other].map((owner, index) => createResolvedLink(owner, `totals-${index}`)),
  );
  await atOnce(400, (index) =>
    (index % 2 ? first : second).links.click(links[index % 4] as ResolvedLink, {
      clickedAt: (TODAY - (index % 3)) * DAY_MS,
      referrer: index % 5 ? `site-${index % 5}.example` : null,
      country: index % 7 ? "CH" : null,
      bot: index % 11 === 0,
    }),
  );
  // Reading stores what each process has collected.
  await second.links.analytics(id, undefined, ...RANGE);
  const { days, referrers } = await first.links.analytics(id, undefined, ...RANGE);
  t.is(
    days.reduce((sum, { clicks }) => sum + clicks, 0),
    300,
  );
  t.is(referrers.length, 5);
  const { totals, expected } = await totalsOf(id);
  t.deepEqual(totals, expected);
});

const LINKS = 200;
const PER_LINK = 100;

test("the analytics of a link read its own statistics, those of an organization its totals", async (t) => {
  const id = await createOrganization();
  const linkId = await storeStatistics(id, LINKS, PER_LINK);
  const totals = (await knex("click_totals").where({ organization_id: id })).length;
  t.true(totals < (LINKS * PER_LINK) / 20);
  if (engine === "postgres") await knex.raw("analyze click_stats; analyze click_totals");
  const own = openDatabase(url);
  t.teardown(() => own.close());
  const stats = createClickStats(own);
  // A week, of 30 days.
  const ofLink = await readsOf(own, () => stats.read(id, linkId, TODAY - 6, TODAY));
  t.is(ofLink.length, 3);
  const ofAll = await readsOf(own, () => stats.read(id, undefined, TODAY - 6, TODAY));
  t.is(ofAll.length, 3);
  for (const { plan, rows, sql } of ofLink) {
    t.regex(sql, /click_stats/);
    if (engine === "sqlite")
      t.regex(plan, /^SEARCH click_stats USING .* \(link_id=\? AND day>\? AND day<\?\)/);
    else t.true(rows <= PER_LINK, `${rows} rows: ${plan}`);
  }
  for (const { plan, rows, sql } of ofAll) {
    t.notRegex(sql, /click_stats/);
    if (engine === "sqlite")
      t.regex(
        plan,
        /^SEARCH click_totals USING PRIMARY KEY \(organization_id=\? AND dimension=\? AND day>\? AND day<\?\)/,
      );
    else t.true(rows <= 2 * totals, `${rows} rows: ${plan}`);
  }
});

type Read = { sql: string; plan: string; rows: number };

/** Runs reads, and explains each: its plan, and on the servers the number of rows that it examines. */
async function readsOf({ knex }: Database, run: () => Promise<unknown>): Promise<Read[]> {
  const queries: { sql: string; bindings: never[] }[] = [];
  const add = (query: (typeof queries)[number]) => /click_/.test(query.sql) && queries.push(query);
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
