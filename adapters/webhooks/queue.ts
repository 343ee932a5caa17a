import type { Knex } from "knex";
import type { DeliveryQueue, LeasedDelivery } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { updateHealth } from "./health.ts";
import { leaseDeliveries } from "./lease.ts";
import { createSelect } from "./select.ts";
import { prepareSettle, settledRow } from "./settle.ts";
import { countTowardQuota } from "./usage.ts";
import { lockUnverified, settleVerification } from "./verification.ts";

/** Creates the delivery queue of a database. */
export function createDeliveryQueue(
  { knex, engine, transaction, prepare }: Database,
  outbox: Outbox,
  encryption: Encryption,
): DeliveryQueue {
  const record = prepareSettle({ engine, prepare });
  const select = createSelect({ knex, engine, transaction, prepare });
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

/** Queries the row of a delivery; matches nothing once its lease has expired. */
function leasedRow(q: Knex, { webhookId, event, lease }: LeasedDelivery) {
  return q("deliveries").where({ webhook_id: webhookId, event_id: event.id, leased_by: lease });
}
