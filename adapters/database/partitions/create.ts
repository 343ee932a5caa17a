import type { Knex } from "knex";
import type { LimitedClient } from "../limited-client.ts";
import type { Partition } from "./catalog.ts";
import { BRIEFLY, withBriefLocks } from "./lock.ts";
import { endOfUnit, type PartitionedTable, startOfUnit } from "./tables.ts";

// Partitions exist for this long ahead, so the purge may fail for as long.
const AHEAD_MS = 3 * 24 * 60 * 60 * 1000;
const CHECK_VIOLATION = "23514";
/** The constraint of a default partition while a partition is created. */
const EXCLUSION = "without_next_partition";

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
    if (table.isPartlyTimed) await exclude(knex, table, from);
    await withBriefLocks(knex, `${table.name}_default`, BRIEFLY, async (trx) => {
      await createPartition(trx, table, from);
      await dropExclusion(trx, table);
    });
  } catch (error) {
    await removeAbandonedExclusion(knex, table);
    if ((error as { code?: unknown }).code !== CHECK_VIOLATION) throw error;
  }
}

/**
 * Proves that the default partition has no keys of a day or month, while requests use it. Where the old table is the
 * default partition, PostgreSQL would read all of it under a lock.
 */
async function exclude(knex: Knex, table: PartitionedTable, from: number): Promise<void> {
  const name = `${table.name}_default`;
  await withBriefLocks(knex, name, BRIEFLY, async (trx) => {
    await dropExclusion(trx, table);
    await trx.raw(`alter table ?? add constraint ?? check (${conditionOf(table, from)}) not valid`, [
      name,
      EXCLUSION,
    ]);
  });
  await (knex.client as unknown as LimitedClient).exempt(() =>
    knex.raw("alter table ?? validate constraint ??", [name, EXCLUSION]),
  );
}

async function dropExclusion(trx: Knex.Transaction, { name }: PartitionedTable): Promise<void> {
  await trx.raw("alter table ?? drop constraint if exists ??", [`${name}_default`, EXCLUSION]);
}

/** Removes what an attempt to create a partition has left, which would keep rows of that day out. */
export async function removeAbandonedExclusion(knex: Knex, table: PartitionedTable): Promise<void> {
  const { rows } = await knex.raw(
    "select 1 from pg_constraint where conrelid = to_regclass(?) and conname = ?",
    [`${table.name}_default`, EXCLUSION],
  );
  if (rows.length > 0)
    await withBriefLocks(knex, `${table.name}_default`, BRIEFLY, (trx) => dropExclusion(trx, table));
}

/** Returns the condition, as SQL, for the keys of a table before it gets a partition from a time. */
export function conditionOf(table: PartitionedTable, from: number): string {
  const { key, unit, isPartlyTimed } = table;
  const start = `${key} < ${literalOf(table.keyAt(from))}`;
  return isPartlyTimed ? `${start} or ${key} >= ${literalOf(table.keyAt(endOfUnit(unit, from)))}` : start;
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
