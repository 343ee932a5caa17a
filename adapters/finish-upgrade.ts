import type { Encryption } from "./crypto/encryption.ts";
import type { Database } from "./database/index.ts";
import type { Leases } from "./database/leases.ts";
import { readUpgrade, UPGRADE_MS } from "./database/migrations/upgrade.ts";
import { recountUsage } from "./links/recount.ts";
import { markUpdated } from "./links/search/mark-updated.ts";
import { encryptUrls } from "./webhooks/encrypt-urls.ts";

const LEASE = "finish-upgrade";
// How long a process that died blocks the others.
const LEASE_MS = 60 * 60 * 1000;
const FOREVER_MS = 1000 * 365 * UPGRADE_MS;

/**
 * Does what would disturb processes of the previous version, or what they undo, once a day has passed since the migration:
 * encrypts the URLs of webhooks, and updates usage and search index. Once per database.
 */
export function createFinishUpgrade(
  database: Database,
  encryption: Encryption,
  leases: Leases,
): () => Promise<void> {
  const { knex } = database;
  let isFinished = false;

  return async function finishUpgrade() {
    if (isFinished) return;
    const migratedAt = (await readUpgrade(database))?.migratedAt;
    if (migratedAt === undefined || Date.now() < migratedAt + UPGRADE_MS) return;
    const lease = await knex("leases").where({ name: LEASE }).first("expires_at");
    isFinished = lease !== undefined && lease.expires_at > Date.now() + LEASE_MS;
    if (isFinished || !(await leases.acquire(LEASE, LEASE_MS))) return;
    await encryptUrls(database, encryption);
    for (const id of await knex("organizations").orderBy("id").pluck("id")) {
      await recountUsage(database, id);
      await markUpdated(database, id, migratedAt);
    }
    isFinished = await leases.acquire(LEASE, FOREVER_MS);
  };
}
