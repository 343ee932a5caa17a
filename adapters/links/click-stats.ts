import type { Knex } from "knex";
import { LRUCache } from "lru-cache";
import type { Analytics, Click, ResolvedLink } from "../../resources/links/types.ts";
import { type Engine, insertedValue } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { ClickStatRow, ClickTotalRow } from "../database/tables.ts";
import { createWriteBehindBuffer } from "../database/write-behind.ts";

// More than any campaign has. Headers can be forged, so without a limit visitors could fill the table.
const REFERRERS_PER_LINK = 100;
const MAX_LINKS = 10_000;
const OTHER = "(other)";
// How many clicks a crash may lose. Long enough to merge the clicks of a link into one row.
const FLUSH_INTERVAL_MS = 2000;
// SQLite combines at most 500 rows in the statement that Knex builds.
const MAX_ROWS = 500;
// The number of referrers and countries to return, most clicks first.
const TOP_COUNT = 20;
// How long the database may take to add clicks up.
const READ_MS = 10_000;
const DAY_MS = 24 * 60 * 60 * 1000;

type Stat = { row: Omit<ClickStatRow, "clicks">; clicks: number };
type Batch = Map<string, Stat>;
// Some engines return sums as strings, and booleans as numbers. The name is empty if it is unknown.
type DailyClicks = { day: number; bot: boolean | number; clicks: number | string };
type NamedClicks = { name: string; clicks: number | string };
type ClickQueries = { byDay: Knex.QueryBuilder; by(column: "referrer" | "country"): Knex.QueryBuilder };

export type ClickStats = ReturnType<typeof createClickStats>;

export function createClickStats(database: Database) {
  const { knex, engine, transaction, readAside } = database;
  const limitReferrer = createReferrerLimit();
  const buffer = createWriteBehindBuffer<Batch>({
    gatherMs: FLUSH_INTERVAL_MS,
    empty: () => new Map(),
    store,
    carry,
  });

  async function store(batch: Batch) {
    // Every process locks rows in the same order, which prevents deadlocks.
    const keys = [...batch.keys()].sort();
    for (let start = 0; start < keys.length; start += MAX_ROWS) {
      const chunk = keys.slice(start, start + MAX_ROWS);
      const rows = chunk.map((key) => {
        const { row, clicks } = batch.get(key) as Stat;
        return { ...row, clicks };
      });
      await transaction(async (trx) => {
        await trx("click_stats")
          .insert(rows)
          .onConflict(["link_id", "day", "referrer", "country", "bot"])
          .merge({ clicks: trx.raw(`click_stats.clicks + ${insertedValue(engine, "clicks")}`) });
        await addToTotals(trx, engine, rows);
      });
      for (const key of chunk) batch.delete(key);
    }
  }

  return {
    /** Adds one click. It is stored a few seconds later; a crash loses at most the clicks of those seconds. */
    add({ id, organizationId }: ResolvedLink, { clickedAt, country, bot, ...click }: Click): void {
      const day = Math.floor(clickedAt / DAY_MS);
      const referrer = limitReferrer(id, day, click.referrer ?? "");
      const link = { link_id: id, day, referrer, country: country ?? "", bot };
      const row = { ...link, organization_id: organizationId };
      addTo(buffer.next(), Object.values(row).join(" "), { row, clicks: 1 });
    },

    /** Sums the clicks of one link of the organization, or of all its links. Both ends are inclusive. */
    async read(
      organizationId: string,
      linkId: string | undefined,
      from: number,
      to: number,
    ): Promise<Analytics> {
      await buffer.settled();
      const days: [number, number] = [from, to];
      const clicks =
        linkId === undefined ? clicksInTotals(knex, organizationId, days) : clicksInStats(knex, linkId, days);
      const top = async (column: "referrer" | "country") => {
        const query = clicks
          .by(column)
          .orderBy([{ column: "clicks", order: "desc" }, "name"])
          .limit(TOP_COUNT);
        const rows = await readAside<NamedClicks>(query, READ_MS);
        return rows.map(({ name, clicks }) => ({ name: name || null, clicks: Number(clicks) }));
      };
      const [byDay, referrers, countries] = await Promise.all([
        readAside<DailyClicks>(clicks.byDay, READ_MS),
        top("referrer"),
        top("country"),
      ]);
      return { days: byDay.map(toDay), referrers, countries };
    },

    drained: buffer.drained,
  };
}

function carry(failed: Batch, next: Batch): void {
  for (const [key, stat] of failed) addTo(next, key, stat);
}

function addTo(batch: Batch, key: string, { row, clicks }: Stat): void {
  const existing = batch.get(key);
  if (existing) existing.clicks += clicks;
  else batch.set(key, { row, clicks });
}

function clicksInStats(knex: Knex, linkId: string, days: [number, number]): ClickQueries {
  const stats = () => knex("click_stats").where({ link_id: linkId }).whereBetween("day", days);
  return {
    byDay: stats().groupBy("day", "bot").select("day", "bot").sum({ clicks: "clicks" }),
    by: (column) =>
      stats().where({ bot: false }).groupBy(column).select({ name: column }).sum({ clicks: "clicks" }),
  };
}

function clicksInTotals(knex: Knex, organizationId: string, days: [number, number]): ClickQueries {
  const totals = () =>
    knex("click_totals").where({ organization_id: organizationId }).whereBetween("day", days);
  return {
    byDay: totals()
      .whereIn("dimension", ["clicks", "bots"])
      .select("day", "clicks", knex.raw("dimension = 'bots' as bot")),
    by: (dimension) => totals().where({ dimension }).groupBy("name").select("name").sum({ clicks: "clicks" }),
  };
}

function toDay({ day, bot, clicks }: DailyClicks) {
  return { day, bot: Boolean(bot), clicks: Number(clicks) };
}

/** Returns the referrer, or `OTHER` once a link has had the maximum number of different referrers on that day. */
function createReferrerLimit(): (linkId: string, day: number, referrer: string) => string {
  let currentDay = 0;
  const referrersByLink = new LRUCache<string, Set<string>>({ max: MAX_LINKS });
  return (linkId, day, referrer) => {
    if (referrer === "") return referrer;
    if (day !== currentDay) referrersByLink.clear();
    currentDay = day;
    const referrers = referrersByLink.get(linkId) ?? new Set();
    if (referrers.has(referrer)) return referrer;
    if (referrers.size >= REFERRERS_PER_LINK) return OTHER;
    referrers.add(referrer);
    referrersByLink.set(linkId, referrers);
    return referrer;
  };
}

export async function addToTotals(
  trx: Knex.Transaction,
  engine: Engine,
  stats: ClickStatRow[],
): Promise<void> {
  const totals = new Map<string, ClickTotalRow>();
  for (const { organization_id, day, clicks, ...stat } of stats) {
    for (const [dimension, name] of dimensionsOf(stat)) {
      const key = [organization_id, dimension, day, name].join(" ");
      const total = totals.get(key);
      if (total) total.clicks += clicks;
      else totals.set(key, { organization_id, dimension, day, name, clicks });
    }
  }
  // In the same order as above.
  const rows = [...totals.keys()].sort().map((key) => totals.get(key) as ClickTotalRow);
  for (let start = 0; start < rows.length; start += MAX_ROWS)
    await trx("click_totals")
      .insert(rows.slice(start, start + MAX_ROWS))
      .onConflict(["organization_id", "dimension", "day", "name"])
      .merge({ clicks: trx.raw(`click_totals.clicks + ${insertedValue(engine, "clicks")}`) });
}

type Dimension = [dimension: ClickTotalRow["dimension"], name: string];

function dimensionsOf({
  bot,
  referrer,
  country,
}: Pick<ClickStatRow, "bot" | "referrer" | "country">): Dimension[] {
  if (bot) return [["bots", ""]];
  const all: Dimension = ["clicks", ""];
  return [all, ["referrer", referrer], ["country", country]];
}
