import type { Knex } from "knex";
import type { LeasedDelivery, Outcome } from "../../resources/webhooks/types.ts";
import { pendingWebhook } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { WebhookRow } from "../database/tables/webhooks.ts";
import { type Change, eventRow, type Outbox } from "../events/outbox.ts";
import { firstDue } from "./delivery-log.ts";
import { webhookEvent } from "./row.ts";

export type Verification = Pick<WebhookRow, "verification_event_id" | "verification_expires_at">;
type Owner = Pick<WebhookRow, "id" | "organization_id">;

// The attempts to deliver the test event take up to 2 hours and 52 minutes.
const VERIFICATION_MS = 3 * 60 * 60 * 1000;
const VERIFIED: Verification = { verification_event_id: null, verification_expires_at: null };

export function unverified(): Verification {
  return { verification_event_id: null, verification_expires_at: Date.now() };
}

/** Creates what verifies endpoints, each by a test event that it has to accept. */
export function createVerification(database: Pick<Database, "engine">, { trace }: Pick<Outbox, "trace">) {
  /** Records a test event with one delivery, bypassing the outbox, which would add one for every webhook. */
  async function recordTest(
    { trx, actor }: Pick<Change, "trx" | "actor">,
    webhook: Owner,
    verification = false,
  ): Promise<string> {
    const data = { webhook_id: webhook.id, verification };
    const event = eventRow(actor, webhookEvent("webhook.test", webhook, data), trace.of("webhook.test"));
    const { id: event_id, created_at, expires_at } = event;
    await trx("events").insert(event);
    await trx("deliveries").insert({
      webhook_id: webhook.id,
      event_id,
      type: event.type,
      status: "pending",
      attempts: 0,
      due_at: await firstDue(database, trx, webhook.id),
      log: "[]",
      created_at,
      expires_at,
    });
    return event_id;
  }

  return {
    recordTest,

    async start(change: Change, webhook: Owner) {
      const verification_event_id = await recordTest(change, webhook, true);
      return { verification_event_id, verification_expires_at: Date.now() + VERIFICATION_MS };
    },

    /** The deliveries that waited for it become due in order, and fail if the webhook isn't verified. */
    async settle(
      trx: Knex.Transaction,
      { webhookId, event, urlHash }: LeasedDelivery,
      { status }: Outcome,
    ): Promise<void> {
      if (status === "pending") return;
      const ended = await trx("webhooks")
        // Skipped if a later test event has replaced this one.
        .where({ id: webhookId, url_hash: urlHash, verification_event_id: event.id })
        .update(status === "succeeded" ? VERIFIED : unverified());
      if (!ended) return;
      await trx("deliveries")
        .where(pendingWebhook(database.engine).column as "webhook_id", webhookId)
        .where({ status: "pending" })
        .where("due_at", ">", Date.now())
        .whereNull("leased_by")
        .update({ due_at: trx.ref("created_at") });
    },
  };
}
