import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Attempt, LeasedDelivery, Outcome } from "../../resources/webhooks/types.ts";
import type { Outbox } from "../events/outbox.ts";

type SettledAttempt = { leased: LeasedDelivery; attempt: Attempt; outcome: Outcome };

/**
 * Updates the health of a webhook after an attempt: failing or not, paused, or disabled. Part of the caller's transaction.
 * Has no effect if the URL has changed since the lease.
 */
export async function updateHealth(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  { leased, attempt, outcome }: SettledAttempt,
): Promise<void> {
  const { webhookId, url } = leased;
  const webhook = () => trx("webhooks").where({ id: webhookId, url });
  if (outcome.status === "succeeded") {
    await webhook().update({ failing_since: null });
    return;
  }
  await webhook().whereNull("failing_since").update({ failing_since: attempt.at });
  if (outcome.status === "pending") {
    if (outcome.pauseUntil !== undefined) await webhook().update({ paused_until: outcome.pauseUntil });
    return;
  }
  if (outcome.disable) await disable(trx, outbox, actor, leased, outcome.disable);
}

async function disable(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  { webhookId, organizationId, url, failingSince }: LeasedDelivery,
  reason: string,
): Promise<void> {
  const disabled = await trx("webhooks")
    // Skipped if another attempt has succeeded since the lease.
    .where({
      id: webhookId,
      url,
      enabled: true,
      ...(failingSince !== null && { failing_since: failingSince }),
    })
    .update({ enabled: false, disabled_reason: reason, updated_at: Date.now() });
  if (!disabled) return;
  const data = { url, reason };
  await outbox.record(trx, actor, { organizationId, type: "webhook.disabled", subject: webhookId, data });
}
