import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Attempt, LeasedDelivery, Outcome } from "../../resources/webhooks/types.ts";
import type { Outbox } from "../events/outbox.ts";
import { redactUrl } from "./url.ts";

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
  const { webhookId, urlHash } = leased;
  const webhook = () => trx("webhooks").where({ id: webhookId, url_hash: urlHash });
  if (outcome.status === "succeeded") {
    const slow_since = outcome.isSlow ? (leased.slowSince ?? attempt.at) : null;
    await webhook().update({ failing_since: null, failures: 0, blocked_until: null, slow_since });
    return;
  }
  await webhook().whereNull("failing_since").update({ failing_since: attempt.at });
  await webhook().increment("failures");
  if (outcome.status === "pending") {
    const { pauseUntil, blockUntil } = outcome;
    if (pauseUntil !== undefined) await webhook().update({ paused_until: pauseUntil });
    if (blockUntil !== undefined) await webhook().update({ blocked_until: blockUntil });
    return;
  }
  if (outcome.disable) await disable(trx, outbox, actor, leased, outcome.disable);
}

async function disable(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  { webhookId, organizationId, url, urlHash, failingSince }: LeasedDelivery,
  reason: string,
): Promise<void> {
  const disabled = await trx("webhooks")
    // Skipped if another attempt has succeeded since the lease.
    .where({
      id: webhookId,
      url_hash: urlHash,
      enabled: true,
      ...(failingSince !== null && { failing_since: failingSince }),
    })
    .update({ enabled: false, disabled_reason: reason, updated_at: Date.now() });
  if (!disabled) return;
  const data = { url: redactUrl(url), reason };
  await outbox.record(trx, actor, { organizationId, type: "webhook.disabled", subject: webhookId, data });
}
