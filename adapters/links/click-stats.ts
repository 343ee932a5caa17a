import type { Analytics, Click, ResolvedLink } from "../../resources/links/types.ts";
import { insertedValue } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { ClickStatRow } from "../database/link-tables.ts";
import { withRetries } from "../database/retry.ts";
import { createWriteBehindBuffer } from "../database/write-behind.ts";
import { createReferrerLimit } from "./referrer-limit.ts";

/** Aggregates clicks by day, referrer and country. */
export type ClickStats = {
  /** Adds one click. It is stored a few seconds later; a crash loses at most the clicks of those seconds. */
  add(link: ResolvedLink, click: Click): void;
  /** Sums the clicks of one link, or of all links of an organization. `from` and `to` are inclusive. */
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

type Sum = { clicks?: unknown };
type Stat = { row: Omit<ClickStatRow, "clicks">; clicks: number };
type Batch = Map<string, Stat>;

/** Creates the click statistics of one process. */
export function createClickStats({ knex, engine, readAside }: Database): ClickStats {
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
      await withRetries(
        async () =>
          void (await knex("click_stats")
            .insert(rows)
            .onConflict(KEY)
            .merge({ clicks: knex.raw(`click_stats.clicks + ${insertedValue(engine, "clicks")}`) })),
        false,
      );
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
      const stats = () =>
        knex("click_stats")
          .where({ organization_id: organizationId, ...(linkId !== undefined && { link_id: linkId }) })
          .whereBetween("day", [from, to]);
      const top = async (column: "referrer" | "country") => {
        const query = stats()
          .where({ bot: false })
          .groupBy(column)
          .select(column)
          .sum({ clicks: "clicks" })
          .orderBy([{ column: "clicks", order: "desc" }, column])
          .limit(TOP_COUNT);
        const rows = await readAside<{ [name in typeof column]: string } & Sum>(query, READ_MS);
        return rows.map((row) => ({ name: row[column] || null, clicks: Number(row.clicks) }));
      };
      const [days, referrers, countries] = await Promise.all([
        readAside<Pick<ClickStatRow, "day" | "bot"> & Sum>(
          stats().groupBy("day", "bot").select("day", "bot").sum({ clicks: "clicks" }),
          READ_MS,
        ),
        top("referrer"),
        top("country"),
      ]);
      return { days: days.map(toDay), referrers, countries };
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

/** Converts the sum to a number: PostgreSQL and MariaDB return it as a string. */
function toDay({ day, bot, clicks }: Pick<ClickStatRow, "day" | "bot"> & Sum) {
  return { day, bot: Boolean(bot), clicks: Number(clicks) };
}
