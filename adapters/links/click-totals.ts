import type { Knex } from "knex";
import { type Engine, insertedValue } from "../database/engine.ts";
import type { ClickStatRow, ClickTotalRow } from "../database/link-tables.ts";

const KEY = ["organization_id", "dimension", "day", "name"];
// SQLite combines at most 500 rows in the statement that Knex builds.
const MAX_ROWS = 500;

/** A day's clicks of people or of known bots. Some engines return sums as strings, and booleans as numbers. */
export type DailyClicks = { day: number; bot: boolean | number; clicks: number | string };
/** The clicks of people from a referrer or a country; its name is empty if it is unknown. */
export type NamedClicks = { name: string; clicks: number | string };
/** Queries for the clicks on some days. */
export type ClickQueries = {
  /** Selects `DailyClicks`. */
  byDay: Knex.QueryBuilder;
  /** Selects `NamedClicks`. */
  by(column: "referrer" | "country"): Knex.QueryBuilder;
};

/** Selects an organization's clicks in its totals. */
export function clicksInTotals(knex: Knex, organizationId: string, days: [number, number]): ClickQueries {
  const totals = () =>
    knex("click_totals").where({ organization_id: organizationId }).whereBetween("day", days);
  return {
    byDay: totals()
      .whereIn("dimension", ["clicks", "bots"])
      .select("day", "clicks", knex.raw("dimension = 'bots' as bot")),
    by: (dimension) => totals().where({ dimension }).groupBy("name").select("name").sum({ clicks: "clicks" }),
  };
}

/** Adds clicks to the totals of their organizations. Part of the transaction that stores their statistics. */
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
  // Every process locks rows in the same order, which prevents deadlocks.
  const rows = [...totals.keys()].sort().map((key) => totals.get(key) as ClickTotalRow);
  for (let start = 0; start < rows.length; start += MAX_ROWS)
    await trx("click_totals")
      .insert(rows.slice(start, start + MAX_ROWS))
      .onConflict(KEY)
      .merge({ clicks: trx.raw(`click_totals.clicks + ${insertedValue(engine, "clicks")}`) });
}

/** Returns what clicks are added up by, and the name within it. */
function dimensionsOf({
  bot,
  referrer,
  country,
}: Pick<ClickStatRow, "bot" | "referrer" | "country">): [
  dimension: ClickTotalRow["dimension"],
  name: string,
][] {
  if (bot) return [["bots", ""]];
  return [
    ["clicks", ""],
    ["referrer", referrer],
    ["country", country],
  ];
}
