import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "./database.ts";
import type { Leases } from "./leases.ts";

// A batch holds requests up for about a millisecond; at this pace as many rows go as a process can issue tokens.
const BATCH = 100;
const PAUSE_MS = 10;

const KINDS = [
  { table: "tokens", key: ["id_hash"] },
  { table: "sessions", key: ["id_hash"] },
  { table: "interactions", key: ["id_hash"] },
  { table: "one_time_links", key: ["id_hash"] },
  { table: "grants", key: ["id"] },
  { table: "client_secrets", key: ["id"] },
  { table: "invitations", key: ["id"] },
  { table: "idempotency_keys", key: ["organization_id", "key_hash"] },
  // Before the events that they are about.
  { table: "deliveries", key: ["webhook_id", "event_id"] },
  { table: "events", key: ["id"] },
] as const;

export type Deleted = Record<(typeof KINDS)[number]["table"], number>;

// A process that dies while it sweeps holds the others up for so long.
const LEASE_MS = 30_000;

/**
 * Removes whatever expired before now, in small indexed batches, by one process at a time. Resolves to the number of
 * rows per kind; to nothing while another process sweeps. `stop` ends it after the current batch.
 */
export async function sweep(
  database: Database,
  leases: Leases,
  stop?: AbortSignal,
): Promise<Deleted | undefined> {
  if (!(await leases.take("sweep", LEASE_MS))) return undefined;
  let leasedAt = Date.now();

  async function mayContinue(): Promise<boolean> {
    if (stop?.aborted) return false;
    if (Date.now() <= leasedAt + LEASE_MS / 3) return true;
    leasedAt = Date.now();
    return leases.take("sweep", LEASE_MS);
  }

  try {
    const deleted = {} as Deleted;
    for (const { table, key } of KINDS) deleted[table] = await sweepTable(database, table, key, mayContinue);
    return deleted;
  } finally {
    await leases.release("sweep");
  }
}

async function sweepTable(
  { knex }: Database,
  table: string,
  key: readonly string[],
  mayContinue: () => Promise<boolean>,
): Promise<number> {
  let total = 0;
  while (await mayContinue()) {
    const now = Date.now();
    // Selected first: not every engine has a DELETE with a limit.
    const expired = await knex(table)
      .where("expires_at", "<=", now)
      .orderBy("expires_at")
      .limit(BATCH)
      .select(...key);
    const keys = expired.map((row) => key.map((column) => row[column]));
    // Again by its expiry: a row may have been renewed in the meantime, an idempotency key that is used again say.
    if (keys.length > 0)
      total += await knex(table).whereIn(key, keys).where("expires_at", "<=", now).delete();
    if (expired.length < BATCH) break;
    await sleep(PAUSE_MS);
  }
  return total;
}
