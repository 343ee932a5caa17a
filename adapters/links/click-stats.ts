import type { Knex } from "knex";
import { LRUCache } from "lru-cache";
import type { Analytics, Click, ResolvedLink } from "../../resources/links/types.ts";
import { insertedValue } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { ClickStatRow } from "../database/link-tables.ts";
import { createWriteBehindBuffer } from "../database/write-behind.ts";
import {
  addToTotals,
  type ClickQueries,
  clicksInTotals,
  type DailyClicks,
  type NamedClicks,
} from "./click-totals.ts";

// More than any campaign has. Headers can be forged, so without a limit visitors could fill the table.
const REFERRERS_PER_LINK = 100;
// The number of links whose referrers are kept in memory. The least recently used ones are evicted first.
const MAX_LINKS = 10_000;

/** The name under which all further referrers of a link are counted. */
const OTHER = "(other)";

/** Returns the referrer, or `OTHER` once a link has had the maximum number of different referrers on that day. */
type ReferrerLimit = (linkId: string, day: number, referrer: string) => string;

/** Aggregates clicks by day, referrer and country. */
export type ClickStats = {
  /** Adds one click. It is stored a few seconds later; a crash loses at most the clicks of those seconds. */
  add(link: ResolvedLink, click: Click): void;
  /** Sums the clicks of one link, which has to be the organization's, or of all its links. Both ends are inclusive. */
  read(organizationId: string, linkId: string | undefined, from: number, to: number): Promise<Analytics>;
  /** Resolves when nothing is left to store. */
  drained(): Promise<void>;
};

// How many clicks a crash may lose. Long enough to merge the clicks of a link into one row.
const FLUSH_INTERVAL_MS = 2000;
// The maximum number of rows in one statement.
const MAX_ROWS = 500;
// The number of referrers and countries to return, most clicks first.
const TOP_COUNT = 20;
const DAY_MS = 24 * 60 * 60 * 1000;
const KEY = ["link_id", "day", "referrer", "country", "bot"];

// How long the database may take to add them up.
const READ_MS = 10_000;

type Stat = { row: Omit<ClickStatRow, "clicks">; clicks: number };
type Batch = Map<string, Stat>;

/** Creates the click statistics of one process. */
export function createClickStats(database: Database): ClickStats {
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
          .onConflict(KEY)
          .merge({ clicks: trx.raw(`click_stats.clicks + ${insertedValue(engine, "clicks")}`) });
        await addToTotals(trx, engine, rows);
      });
      for (const key of chunk) batch.delete(key);
    }
  }

  return {
    add({ id, organizationId }, { clickedAt, country, bot, ...click }) {
      const day = Math.floor(clickedAt / DAY_MS);
      const referrer = limitReferrer(id, day, click.referrer ?? "");
      const row = {
        link_id: id,
        day,
        referrer,
        country: country ?? "",
        bot,
        organization_id: organizationId,
      };
      addTo(buffer.next(), Object.values(row).join(" "), { row, clicks: 1 });
    },

    async read(organizationId, linkId, from, to) {
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

/** Selects a link's clicks in its statistics. */
function clicksInStats(knex: Knex, linkId: string, days: [number, number]): ClickQueries {
  const stats = () => knex("click_stats").where({ link_id: linkId }).whereBetween("day", days);
  return {
    byDay: stats().groupBy("day", "bot").select("day", "bot").sum({ clicks: "clicks" }),
    by: (column) =>
      stats().where({ bot: false }).groupBy(column).select({ name: column }).sum({ clicks: "clicks" }),
  };
}

/** Converts the sum to a number: PostgreSQL and MariaDB return it as a string. */
function toDay({ day, bot, clicks }: DailyClicks) {
  return { day, bot: Boolean(bot), clicks: Number(clicks) };
}

/** Creates the referrer limit of one process. */
function createReferrerLimit(): ReferrerLimit {
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
