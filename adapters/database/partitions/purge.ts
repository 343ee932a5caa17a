import type { Knex } from "knex";
import type { Database } from "../index.ts";
import { listPartitions, type Partition, readStates } from "./catalog.ts";
import { removeAbandonedLimit } from "./convert.ts";
import { createAhead, removeAbandonedExclusion } from "./create.ts";
import { BRIEFLY, isLockTimeout, withBriefLocks } from "./lock.ts";
import { PARTITIONED, type PartitionedTable } from "./tables.ts";

// Rows that all expire within a day wait for the end of their partition. If it can't be dropped for a day, they don't.
const WAIT_MS = 24 * 60 * 60 * 1000;

/** What is in a partition: when its last row expires, null if there is none, and whether a row keeps it. */
type Content = { last: number | null; kept: boolean };

/**
 * Creates the partitions of the coming days, and drops those whose rows have all expired. Resolves to the names of the
 * dropped ones. What can't be locked briefly is done at the next purge.
 */
export async function maintainPartitions(
  { knex, engine }: Pick<Database, "knex" | "engine">,
  mayContinue: () => Promise<boolean>,
): Promise<string[]> {
  if (engine !== "postgres") return [];
  const dropped: string[] = [];
  for (const { table, state, isLimited } of await readStates(knex)) {
    if (!(await mayContinue())) break;
    try {
      if (isLimited) await removeAbandonedLimit(knex, table);
      if (state !== "ours") continue;
      await removeAbandonedExclusion(knex, table);
      const partitions = await listPartitions(knex, table);
      await createAhead(knex, table, partitions);
      if (table.expires) await dropExpired(knex, table, partitions, (name) => dropped.push(name));
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
    }
  }
  return dropped;
}

/** Drops the partitions whose rows have all expired. Looks before it locks, and again after. */
async function dropExpired(
  knex: Knex,
  table: PartitionedTable,
  partitions: Partition[],
  onDropped: (name: string) => void,
): Promise<void> {
  const hasExpired = async (q: Knex, candidates: Partition[]) => {
    const contents = await read(q, table, candidates);
    return candidates.filter(({ name }) => {
      const { last, kept } = contents.get(name) as Content;
      return !kept && (last ?? 0) <= Date.now();
    });
  };
  const ended = partitions.filter(({ to }) => to !== undefined && to <= Date.now());
  if (ended.length === 0) return;
  for (const partition of await hasExpired(knex, ended)) {
    const isDropped = await withBriefLocks(knex, partition.name, BRIEFLY, async (trx) => {
      // Dropping locks the table. In this order, and before the partition, it waits for no one who waits for it.
      await trx.raw("lock table only ?? in access exclusive mode", [table.name]);
      await trx.raw("lock table ?? in access exclusive mode", [partition.name]);
      if ((await hasExpired(trx, [partition])).length === 0) return false;
      await trx.raw("drop table ??", [partition.name]);
      return true;
    });
    if (isDropped) onDropped(partition.name);
  }
}

/**
 * Returns where the purge deletes the expired rows of a table: the table, or those of its partitions that aren't about to
 * be dropped.
 */
export async function relationsToPurge(
  { knex, engine }: Pick<Database, "knex" | "engine">,
  name: string,
  now: number,
): Promise<string[]> {
  if (engine !== "postgres" || !PARTITIONED.some((table) => table.name === name)) return [name];
  const found = (await readStates(knex)).find(({ table }) => table.name === name);
  if (found?.state !== "ours") return [name];
  const partitions = await listPartitions(knex, found.table);
  const contents = await read(knex, found.table, partitions);
  return partitions
    .filter((partition) => {
      const content = contents.get(partition.name);
      return content && content.last !== null && (content.kept || !waits(partition, content.last, now));
    })
    .map((partition) => partition.name);
}

function waits({ to }: Partition, last: number, now: number): boolean {
  return to !== undefined && last <= now + WAIT_MS && last > now - WAIT_MS;
}

/** Reads the content of partitions, by indexes. */
async function read(
  knex: Knex,
  { kept }: PartitionedTable,
  partitions: Partition[],
): Promise<Map<string, Content>> {
  const exist = kept.map((condition) => `exists (select 1 from ?? where ${condition})`);
  const one = `select ? as name, (select max(expires_at) from ??) as last, ${["false", ...exist].join(" or ")} as kept`;
  const { rows } = await knex.raw(
    partitions.map(() => one).join(" union all "),
    partitions.flatMap(({ name }) => [name, name, ...kept.map(() => name)]),
  );
  return new Map(rows.map((row: Content & { name: string }) => [row.name, row]));
}
