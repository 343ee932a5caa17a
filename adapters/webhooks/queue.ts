import type { Knex } from "knex";
import type { Attempt, DeliveryQueue, LeasedDelivery, Outcome } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import type { Database } from "../database/index.ts";
import type { DeliveryRow } from "../database/tables.ts";
import type { Outbox } from "../events/outbox.ts";
import { updateHealth } from "./health.ts";
import { leaseDeliveries } from "./lease.ts";
import { createSelect } from "./select.ts";
import { countTowardQuota } from "./usage.ts";
import { lockUnverified, settleVerification } from "./verification.ts";

// Limits the log of a delivery that is resent again and again.
const LOG_MAX = 50;

/** Creates the delivery queue of a database. */
export function createDeliveryQueue(
  { knex, engine, transaction, prepare }: Database,
  outbox: Outbox,
  encryption: Encryption,
): DeliveryQueue {
  const record = prepare<number, keyof SettledRow>((q, row) =>
    q("deliveries")
      .where({ webhook_id: row.webhook_id, event_id: row.event_id, leased_by: row.leased_by })
      .update({
        status: row.status,
        attempts: row.attempts,
        due_at: row.due_at,
        leased_by: null,
        log: row.log,
      }),
  );
  const select = createSelect({ knex, engine, transaction });
  return {
    onDue: outbox.onCommit,

    async lease(limits) {
      const now = Date.now();
      const keys = await select(limits, now);
      if (keys.length === 0) return [];
      const { limitsOf, actor } = limits;
      // After a power failure, deliveries that are lost with their lease and count are due again, as after a crash.
      return transaction(
        (trx) =>
          leaseDeliveries(trx, encryption, keys, now, (rows) =>
            countTowardQuota(trx, rows, { engine, outbox, actor, limitsOf, now }),
          ),
        { isDurable: false },
      );
    },

    async postpone(leased, until) {
      await leasedRow(knex, leased).update({ due_at: until, leased_by: null });
    },

    async hold(leased) {
      const now = Date.now();
      const { webhookId } = leased;
      await transaction(async (trx) => {
        const waiting = await lockUnverified(trx, engine, [webhookId], now);
        await leasedRow(trx, leased).update({ due_at: waiting.get(webhookId) ?? now, leased_by: null });
      });
    },

    async settle(leased, attempt, outcome, actor) {
      const wasHealthy = leased.failures === 0 && leased.failingSince === null && leased.slowSince === null;
      const isStillHealthy = outcome.status === "succeeded" && !outcome.isSlow && wasHealthy;
      if ((isStillHealthy || outcome.isUnsent) && !leased.verifies) {
        await record(settledRow(leased, attempt, outcome));
        return;
      }
      await transaction(async (trx) => {
        const settled = { ...settledRow(leased, attempt, outcome), leased_by: null };
        // Without the lease, another process attempts the delivery.
        if (!(await leasedRow(trx, leased).update(settled))) return;
        if (!outcome.isUnsent) await updateHealth(trx, outbox, actor, { leased, attempt, outcome });
        if (leased.verifies) await settleVerification(trx, engine, leased, outcome);
      });
    },
  };
}

type SettledRow = Pick<DeliveryRow, "webhook_id" | "event_id" | "status" | "attempts" | "due_at" | "log"> & {
  leased_by: string;
};

/** Returns the key of a leased delivery, and its columns after an attempt. */
function settledRow(leased: LeasedDelivery, attempt: Attempt, outcome: Outcome): SettledRow {
  return {
    webhook_id: leased.webhookId,
    event_id: leased.event.id,
    leased_by: leased.lease,
    status: outcome.status,
    attempts: leased.attemptCount + 1,
    due_at: outcome.status === "pending" ? outcome.retryAt : null,
    log: JSON.stringify([...leased.attempts, attempt].slice(-LOG_MAX)),
  };
}

/** Queries the row of a delivery; matches nothing once its lease has expired. */
function leasedRow(q: Knex, { webhookId, event, lease }: LeasedDelivery) {
  return q("deliveries").where({ webhook_id: webhookId, event_id: event.id, leased_by: lease });
}
