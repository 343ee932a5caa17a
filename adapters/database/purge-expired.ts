import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "./index.ts";
import type { Leases } from "./leases.ts";

// A batch delays requests by about a millisecond. At this pace rows are removed as fast as a process can issue tokens.
const BATCH = 100;
const PAUSE_MS = 10;

const TABLES = [
  { table: "tokens", key: ["id_hash"] },
  { table: "sessions", key: ["id_hash"] },
  { table: "interactions", key: ["id_hash"] },
  { table: "one_time_links", key: ["id_hash"] },
  { table: "grants", key: ["id"] },
  { table: "client_secrets", key: ["id"] },
  { table: "invitations", key: ["id"] },
  { table: "idempotency_keys", key: ["organization_id", "key_hash"] },
  // Before the events that they deliver.
  { table: "deliveries", key: ["webhook_id", "event_id"] },
  { table: "events", key: ["id"] },
] as const;

/** The number of deleted rows per table. */
export type Deleted = Record<(typeof TABLES)[number]["table"], number>;

// How long a process that died while purging blocks the others.
const LEASE_MS = 30_000;
// Stored in the database, and shared with running processes of earlier versions.
const LEASE = "sweep";

/**
 * Deletes expired rows in small indexed batches, in one process at a time. Resolves to the number of rows per table, or
 * to undefined while another process is purging. `stop` ends the purge after the current batch.
 */
export async function purgeExpired(
  database: Database,
  leases: Leases,
  stop?: AbortSignal,
): Promise<Deleted | undefined> {
  if (!(await leases.acquire(LEASE, LEASE_MS))) return undefined;
  let leasedAt = Date.now();

  async function mayContinue(): Promise<boolean> {
    if (stop?.aborted) return false;
    if (Date.now() <= leasedAt + LEASE_MS / 3) return true;
    leasedAt = Date.now();
    return leases.acquire(LEASE, LEASE_MS);
  }

  try {
    const deleted = {} as Deleted;
    for (const { table, key } of TABLES) deleted[table] = await purgeTable(database, table, key, mayContinue);
    return deleted;
  } finally {
    await leases.release(LEASE);
  }
}

async function purgeTable(
  { knex }: Database,
  table: string,
  key: readonly string[],
  mayContinue: () => Promise<boolean>,
): Promise<number> {
  let total = 0;
  while (await mayContinue()) {
    const now = Date.now();
    // Selects first, because not every engine supports DELETE with a limit.
    const expired = await knex(table)
      .where("expires_at", "<=", now)
      .orderBy("expires_at")
      .limit(BATCH)
      .select(...key);
    const keys = expired.map((row) => key.map((column) => row[column]));
    // Checks the expiry again: a row may have been renewed since, such as a reused idempotency key.
    if (keys.length > 0)
      total += await knex(table).whereIn(key, keys).where("expires_at", "<=", now).delete();
    if (expired.length < BATCH) break;
    await sleep(PAUSE_MS);
  }
  return total;
}
