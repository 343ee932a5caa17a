import { randomUUID } from "node:crypto";
import type { Knex } from "knex";
import type { LeasedDelivery, LeaseLimits } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { LEASED_COLUMNS, type LeasedRow, toLeasedDelivery } from "./leased-row.ts";

// An attempt takes at most 15 s, and the queue is polled every second: deliveries that a dead process had leased continue
// within 20 s.
const LEASE_MS = 18_000;
// How many due deliveries are read for each one that is leased, so that webhooks with one event aren't starved by those
// with many.
const READ_FACTOR = 4;

type Key = { webhook_id: string; event_id: string };
type DueDelivery = Key & { failing_since: number | null };

/** Finds the oldest due deliveries, without webhooks that have reached their limit. */
export function findDue(
  knex: Knex,
  { max, perWebhook, failing, inFlight }: LeaseLimits,
  now: number,
): Promise<DueDelivery[]> {
  const webhooksWithAtLeast = (limit: number) =>
    [...inFlight].filter(([, count]) => count >= limit).map(([id]) => id);
  return knex("deliveries as d")
    .leftJoin("webhooks as w", "w.id", "d.webhook_id")
    .where("d.due_at", "<=", now)
    .whereNotIn("d.webhook_id", webhooksWithAtLeast(perWebhook))
    .where((allowed) => {
      allowed.whereNull("w.failing_since");
      if (failing.max > 0) allowed.orWhereNotIn("d.webhook_id", webhooksWithAtLeast(failing.perWebhook));
    })
    .orderBy("d.due_at")
    .limit(max * READ_FACTOR)
    .select("d.webhook_id", "d.event_id", "w.failing_since");
}

/** Selects the oldest deliveries that fit within the limits. */
export function selectWithinLimits(
  due: DueDelivery[],
  { max, perWebhook, failing, inFlight }: LeaseLimits,
): Key[] {
  const counts = new Map(inFlight);
  let failingLeft = failing.max;
  const selected = due.filter(({ webhook_id: id, failing_since }) => {
    const count = counts.get(id) ?? 0;
    const isFailing = failing_since !== null;
    if (count >= (isFailing ? failing.perWebhook : perWebhook)) return false;
    if (isFailing && failingLeft-- <= 0) return false;
    counts.set(id, count + 1);
    return true;
  });
  return selected.slice(0, max);
}

/**
 * Leases deliveries. When several processes compete for a row, the first update wins: it postpones the due time, so the
 * others no longer match the row.
 */
export async function leaseDeliveries(
  trx: Knex.Transaction,
  encryption: Encryption,
  keys: Key[],
  now: number,
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
  return rows.map((row) => toLeasedDelivery(row, { lease, now, encryption }));
}

/** Deletes leased deliveries that were created while their webhook was being deleted. */
async function deleteOrphans(trx: Knex.Transaction, keys: Key[], lease: string): Promise<void> {
  await trx("deliveries")
    .whereIn(["webhook_id", "event_id"], pairsOf(keys))
    .where({ leased_by: lease })
    .whereNotIn("webhook_id", trx("webhooks").select("id"))
    .delete();
}

const pairsOf = (keys: Key[]) => keys.map(({ webhook_id, event_id }) => [webhook_id, event_id]);
