import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type { Database } from "./index.ts";
import type { Table } from "./tables/columns.ts";
import { TABLES } from "./tables/index.ts";

// A batch delays requests by about a millisecond. This pace keeps up with the tokens that a process can issue.
const BATCH = 100;
const PAUSE_MS = 10;

const PURGED = TABLES.filter(({ options }) => options.purged);

/** The number of rows by table. */
export type Deleted = Record<string, number>;

const LEASE_MS = 30_000;

/** Of the rows that had expired when the purge began. */
export type OnPurge = (done: number, total: number) => void;

// Statistics may take hours, so expired rows are deleted in between.
const FOLD_MS = 20_000;

type Job<Result> = (database: Database, mayContinue: () => Promise<boolean>) => Promise<Result>;

/** Resolves to the number of deleted rows per table, or undefined while another process purges. */
export async function purgeExpired(
  database: Database,
  purgeAuditLogs: Job<number>,
  eraseLinks: Job<void>,
  foldClicks: () => AsyncIterable<{ table: string; rows: number }>,
  stop?: AbortSignal,
  onProgress?: OnPurge,
): Promise<Deleted | undefined> {
  const lease = database.lease("sweep", LEASE_MS);
  if (!(await lease.isHeld())) return undefined;
  const mayContinue = async () => !stop?.aborted && (await lease.isHeld());
  try {
    const total = onProgress ? await countExpired(database, Date.now()) : 0;
    let done = 0;
    const onBatch = (rows: number) => {
      done += rows;
      onProgress?.(done, total);
    };
    const deleted: Deleted = {};
    const add = (table: string, rows: number) => {
      deleted[table] = (deleted[table] ?? 0) + rows;
    };
    const purge = async () => {
      for (const table of PURGED) add(table.name, await purgeTable(database, table, mayContinue, onBatch));
      add("events", await purgeAuditLogs(database, mayContinue));
      await eraseLinks(database, mayContinue);
      return performance.now() + FOLD_MS;
    };
    let next = await purge();
    for (const table of ["click_counts", "click_details", "click_sources"]) add(table, 0);
    for await (const { table, rows } of foldClicks()) {
      add(table, rows);
      if (!(await mayContinue())) break;
      if (performance.now() > next) next = await purge();
    }
    return deleted;
  } finally {
    await lease.release();
  }
}

/** Returns when the row expired that has waited longest for the purge; undefined if none waits. */
export async function findOldestExpiry(database: Database, now: number): Promise<number | undefined> {
  let oldest: number | undefined;
  for (const table of PURGED) {
    const expired = expiredIn(database.knex, table, now);
    const row = await expired.orderBy("expires_at").first("expires_at");
    if (row) oldest = Math.min(oldest ?? now, Number(row.expires_at));
  }
  return oldest;
}

async function countExpired({ knex }: Database, now: number): Promise<number> {
  let total = 0;
  for (const table of PURGED) {
    const [row] = await expiredIn(knex, table, now).count({ count: "*" });
    total += Number(row?.count);
  }
  return total;
}

function expiredIn(knex: Knex, { name, options }: Table, end: number): Knex.QueryBuilder {
  return knex(name)
    .whereRaw(options.purged?.where ?? "true")
    .where("expires_at", "<=", end);
}

async function purgeTable(
  { knex }: Database,
  table: Table,
  mayContinue: () => Promise<boolean>,
  onBatch: (rows: number) => void,
): Promise<number> {
  let total = 0;
  const { name, primaryKey: key, options } = table;
  const max = options.purged?.max;
  const surplus = max === undefined ? 0 : await endOfSurplus(knex, name, max);
  while (await mayContinue()) {
    const end = Math.max(surplus, Date.now());
    // Selects first, because not every engine supports DELETE with a limit.
    const expired: Record<string, string>[] = await expiredIn(knex, table, end)
      .orderBy("expires_at")
      .limit(BATCH)
      .select(...key);
    const keys = expired.map((row) => key.map((column) => row[column] as string));
    // Checks the expiry again: a row may have been renewed since, such as a reused idempotency key.
    if (keys.length > 0)
      total += await knex(name)
        .whereIn([...key], keys)
        .where("expires_at", "<=", end)
        .delete();
    onBatch(expired.length);
    if (expired.length < BATCH) break;
    await sleep(PAUSE_MS);
  }
  return total;
}

async function endOfSurplus(knex: Knex, table: string, max: number): Promise<number> {
  const row = await knex(table)
    .whereNotNull("expires_at")
    .orderBy("expires_at", "desc")
    .offset(max)
    .first("expires_at");
  return row?.expires_at ?? 0;
}
