import type { Knex } from "knex";
import type { Link } from "../../resources/links/types.ts";
import type { Database } from "../database/index.ts";

/** A common table expression of the batches in the click log. Finds each by the index, once for all rows of a query. */
export const BATCHES = `with recursive batches(batch) as materialized (
  select min(batch) from click_log
  union all
  select (select min(batch) from click_log where click_log.batch > batches.batch) from batches where batch is not null)`;

// In the same statement as the link, because a click is in its row or in the log at any time.
const UNFOLDED = `(${BATCHES} select json_array(sum(clicks), max(clicked_at))
  from batches cross join click_log using (batch)
  where link_id = links.id and not exists
    (select 1 from click_fold where click_fold.batch >= click_log.batch and click_fold.link_id >= click_log.link_id)
  ) as unfolded`;

/** The columns of `linkColumns` that aren't in the table. */
export type Unfolded = {
  /** JSON: the number of clicks that the row doesn't count yet, and the time of the last one. Both may be null. */
  unfolded?: string;
};

/** Returns the columns to select from `links` for `toLink`. */
export function linkColumns({ knex, engine }: Database): (string | Knex.Raw)[] {
  return engine === "sqlite" ? ["links.*", knex.raw(UNFOLDED)] : ["links.*"];
}

/** Reads the clicks of a link and the time of the last one. */
export function clicksOf(row: { clicks: number; last_clicked_at: number | null } & Unfolded) {
  const { clicks, last_clicked_at: lastClickedAt } = row;
  if (row.unfolded === undefined) return { clicks, lastClickedAt };
  const [count, latest]: [number | null, number | null] = JSON.parse(row.unfolded);
  if (count === null) return { clicks, lastClickedAt };
  return { clicks: clicks + count, lastClickedAt: Math.max(lastClickedAt ?? 0, latest ?? 0) };
}

/** Counts all clicks of a link in its row, with a limit of which new clicks are compared. `link` was read in the same transaction. */
export async function countUnfolded({ engine }: Database, trx: Knex, link: Link): Promise<void> {
  if (engine !== "sqlite") return;
  const { id, clicks, lastClickedAt } = link;
  await trx("links").where({ id }).update({ clicks, last_clicked_at: lastClickedAt });
  await trx.raw(
    `${BATCHES} delete from click_log where batch in (select batch from batches) and link_id = ?`,
    [id],
  );
}
