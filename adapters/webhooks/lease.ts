import { randomUUID } from "node:crypto";
import type { Knex } from "knex";
import type { LeasedDelivery } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import type { Key } from "./due.ts";
import { pairsOf } from "./hold.ts";
import { LEASED_COLUMNS, type LeasedRow, toLeasedDelivery } from "./leased-row.ts";

// An attempt takes at most 15 s, and the queue is polled every second: deliveries that a dead process had leased continue
// within 20 s.
const LEASE_MS = 18_000;

/**
 * Leases deliveries. When several processes compete for a row, the first update wins: it postpones the due time, so the
 * others no longer match the row.
 */
export async function leaseDeliveries(
  trx: Knex.Transaction,
  encryption: Encryption,
  keys: Key[],
  now: number,
  countTowardQuota: (rows: LeasedRow[]) => Promise<LeasedRow[]>,
): Promise<LeasedDelivery[]> {
  const lease = randomUUID();
  const leasedCount = await trx("deliveries")
    .whereIn(["webhook_id", "event_id"], pairsOf(keys))
    .where("due_at", "<=", now)
    .update({ leased_by: lease, due_at: now + LEASE_MS });
  if (leasedCount === 0) return [];
  const rows: LeasedRow[] = await trx("deliveries as d")
    .whereIn(["d.webhook_id", "d.event_id"], pairsOf(keys))
    .where({ leased_by: lease })
    .join("webhooks as w", "w.id", "d.webhook_id")
    .join("events as e", "e.id", "d.event_id")
    .join("organizations as o", "o.id", "w.organization_id")
    .select(LEASED_COLUMNS);
  if (rows.length < leasedCount) await deleteOrphans(trx, keys, lease);
  const allowed = await countTowardQuota(rows);
  return allowed.map((row) => toLeasedDelivery(row, { lease, now, encryption }));
}

/** Deletes leased deliveries that were created while their webhook was being deleted. */
async function deleteOrphans(trx: Knex.Transaction, keys: Key[], lease: string): Promise<void> {
  await trx("deliveries")
    .whereIn(["webhook_id", "event_id"], pairsOf(keys))
    .where({ leased_by: lease })
    .whereNotIn("webhook_id", trx("webhooks").select("id"))
    .delete();
}
