import type { Database } from "./database.ts";

// Small enough that nobody waits for a batch, large enough to keep up with what is issued.
const BATCH = 500;
const PAUSE_MS = 20;

const KINDS = [
  { table: "tokens", key: "id_hash" },
  { table: "sessions", key: "id_hash" },
  { table: "interactions", key: "id_hash" },
  { table: "one_time_links", key: "id_hash" },
  { table: "grants", key: "id" },
  { table: "client_secrets", key: "id" },
] as const;

export type Deleted = Record<(typeof KINDS)[number]["table"], number>;

/** Removes whatever expired before `now`, in small indexed batches. Resolves to the number of rows per kind. */
export async function sweep(database: Database, now = Date.now()): Promise<Deleted> {
  const deleted = {} as Deleted;
  for (const { table, key } of KINDS) deleted[table] = await sweepTable(database, table, key, now);
  return deleted;
}

async function sweepTable({ knex }: Database, table: string, key: string, now: number): Promise<number> {
  let total = 0;
  for (;;) {
    // Selected first: not every engine has a DELETE with a limit.
    const expired = await knex(table)
      .where("expires_at", "<=", now)
      .orderBy("expires_at")
      .limit(BATCH)
      .pluck(key);
    if (expired.length === 0) return total;
    total += await knex(table).whereIn(key, expired).delete();
    if (expired.length < BATCH) return total;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
