import type { Knex } from "knex";
import type { Partition } from "./catalog.ts";
import { BRIEFLY, withBriefLocks } from "./lock.ts";
import { endOfUnit, type PartitionedTable, startOfUnit } from "./tables.ts";

// Partitions exist for this long ahead, so the purge may fail for as long.
const AHEAD_MS = 3 * 24 * 60 * 60 * 1000;
const CHECK_VIOLATION = "23514";

/** Creates the partitions of the coming days. */
export async function createAhead(
  knex: Knex,
  table: PartitionedTable,
  partitions: Partition[],
): Promise<void> {
  const now = Date.now();
  const end = Math.max(...partitions.map(({ to = 0 }) => to));
  // After a longer stop, the days before today have none.
  let from = Math.max(end, startOfUnit(table.unit, now));
  while (from < now + AHEAD_MS) {
    await createUnlessTaken(knex, table, from);
    from = endOfUnit(table.unit, from);
  }
}

/** Rows that are in the default partition already stay there: their partition isn't created. */
async function createUnlessTaken(knex: Knex, table: PartitionedTable, from: number): Promise<void> {
  try {
    await withBriefLocks(knex, `${table.name}_default`, BRIEFLY, (trx) => createPartition(trx, table, from));
  } catch (error) {
    if ((error as { code?: unknown }).code !== CHECK_VIOLATION) throw error;
  }
}

/**
 * Creates the partition from a time to the end of its day or month. It is created as a table and then attached, for which
 * requests that use other partitions don't have to wait.
 */
export async function createPartition(
  trx: Knex.Transaction,
  table: PartitionedTable,
  from: number,
): Promise<void> {
  const name = `${table.name}_${dateOf(from)}`;
  await createPart(trx, table, name);
  const bounds = [table.keyAt(from), table.keyAt(endOfUnit(table.unit, from))].map(literalOf);
  await trx.raw(`alter table ?? attach partition ?? for values from (${bounds[0]}) to (${bounds[1]})`, [
    table.name,
    name,
  ]);
}

/** Creates a table with the columns, indexes and storage settings of the partitions. */
export async function createPart(
  trx: Knex.Transaction,
  { name: table, ownIndex }: PartitionedTable,
  name: string,
): Promise<void> {
  await trx.raw("create table ?? (like ?? including all excluding comments)", [name, table]);
  if (ownIndex)
    await trx.raw(`create unique index ?? on ?? ${ownIndex.definition}`, [
      `${name}_${ownIndex.suffix}`,
      name,
    ]);
  const { rows } = await trx.raw(
    `select c.reloptions from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = to_regclass(?) order by c.oid desc limit 1`,
    [table],
  );
  const options: string[] = rows[0]?.reloptions ?? [];
  if (options.length > 0) await trx.raw(`alter table ?? set (${options.join(", ")})`, [name]);
}

/** Returns the date of a time, as the names of partitions contain it. */
export function dateOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10).replaceAll("-", "");
}

/** Returns a bound as SQL, which accepts no parameters there. Keys consist of letters, digits and underscores. */
export function literalOf(key: string | number): string {
  return typeof key === "number" ? String(key) : `'${key}'`;
}
