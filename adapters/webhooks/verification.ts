import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { LeasedDelivery, Outcome } from "../../resources/webhooks/types.ts";
import { type Engine, pendingWebhook } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { WebhookRow } from "../database/tables/webhooks.ts";
import { eventRow, type Outbox } from "../events/outbox.ts";
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

/** Records a test event with one delivery, bypassing the outbox, which would add one for every webhook. */
export async function recordTest(
  database: Pick<Database, "engine">,
  trx: Knex.Transaction,
  outbox: Outbox,
  webhook: Owner,
  actor: Actor,
  verification: boolean,
): Promise<string> {
  const data = { webhook_id: webhook.id, verification };
  const event = eventRow(actor, webhookEvent("webhook.test", webhook, data), outbox.trace.of("webhook.test"));
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

export async function startVerification(
  database: Pick<Database, "engine">,
  trx: Knex.Transaction,
  outbox: Outbox,
  webhook: Owner,
  actor: Actor,
) {
  const verification_event_id = await recordTest(database, trx, outbox, webhook, actor, true);
  return { verification_event_id, verification_expires_at: Date.now() + VERIFICATION_MS };
}

/** The deliveries that waited for it become due in order, and fail if the webhook isn't verified. */
export async function settleVerification(
  trx: Knex.Transaction,
  engine: Engine,
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
    .where(pendingWebhook(engine).column as "webhook_id", webhookId)
    .where({ status: "pending" })
    .where("due_at", ">", Date.now())
    .whereNull("leased_by")
    .update({ due_at: trx.ref("created_at") });
}
