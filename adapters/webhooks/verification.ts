import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { LeasedDelivery, Outcome, WebhookFields } from "../../resources/webhooks/types.ts";
import { type Engine, pendingWebhook } from "../database/engine.ts";
import type { WebhookRow } from "../database/tables.ts";
import { eventRow, type Outbox } from "../events/outbox.ts";
import type { Key } from "./due.ts";
import { pairsOf } from "./hold.ts";
import { webhookEvent } from "./queries.ts";

type Verification = Pick<WebhookRow, "verification_event_id" | "verification_expires_at">;
type Owner = Pick<WebhookRow, "id" | "organization_id">;

// The attempts to deliver the test event take up to 2 hours and 52 minutes.
const VERIFICATION_MS = 3 * 60 * 60 * 1000;
const VERIFIED: Verification = { verification_event_id: null, verification_expires_at: null };

/** Returns the columns of a webhook that isn't verified and that no test event is sent to. */
function unverified(): Verification {
  return { verification_event_id: null, verification_expires_at: Date.now() };
}

/**
 * Records a test event with a single delivery, bypassing the outbox, which would add one for every subscribed webhook.
 * Returns the event's ID.
 */
export async function recordTest(
  trx: Knex.Transaction,
  outbox: Outbox,
  webhook: Owner,
  actor: Actor,
  verification: boolean,
): Promise<string> {
  const data = { webhook_id: webhook.id, verification };
  const event = eventRow(actor, webhookEvent("webhook.test", webhook, data), outbox.trace.of("webhook.test"));
  await trx("events").insert(event);
  await trx("deliveries").insert({
    webhook_id: webhook.id,
    event_id: event.id,
    status: "pending",
    attempts: 0,
    due_at: event.created_at,
    log: "[]",
    created_at: event.created_at,
    expires_at: event.expires_at,
  });
  return event.id;
}

/** Records the test event that verifies an endpoint, in place of an earlier one, and returns the webhook's columns. */
export async function startVerification(
  trx: Knex.Transaction,
  outbox: Outbox,
  webhook: Owner,
  actor: Actor,
): Promise<Verification & { verification_event_id: string }> {
  const verification_event_id = await recordTest(trx, outbox, webhook, actor, true);
  return { verification_event_id, verification_expires_at: Date.now() + VERIFICATION_MS };
}

/** Returns the columns of a new webhook. A disabled one is verified when it is enabled. */
export function verificationOfNew(
  trx: Knex.Transaction,
  outbox: Outbox,
  webhook: Owner,
  actor: Actor,
  { enabled }: WebhookFields,
): Promise<Verification> | Verification {
  return enabled ? startVerification(trx, outbox, webhook, actor) : unverified();
}

/** Returns the columns that a change affects: a new URL is verified, and so is an unverified one of an enabled webhook. */
export function verificationOfChanged(
  trx: Knex.Transaction,
  outbox: Outbox,
  before: WebhookRow,
  actor: Actor,
  { url, enabled }: Partial<WebhookFields>,
): Promise<Verification> | Partial<Verification> {
  const isVerified = before.verification_expires_at === null;
  if (url === undefined && (isVerified || !enabled)) return {};
  return (enabled ?? before.enabled) ? startVerification(trx, outbox, before, actor) : unverified();
}

/**
 * Ends a verification with the last attempt to deliver its test event. The deliveries that waited for it become due, and
 * fail if the webhook isn't verified. Part of the caller's transaction.
 */
export async function settleVerification(
  trx: Knex.Transaction,
  engine: Engine,
  { webhookId, event, urlHash }: LeasedDelivery,
  outcome: Outcome,
): Promise<void> {
  if (outcome.status === "pending") return;
  const isAccepted = outcome.status === "succeeded";
  const ended = await trx("webhooks")
    // Skipped if a later test event has replaced this one.
    .where({ id: webhookId, url_hash: urlHash, verification_event_id: event.id })
    .update(isAccepted ? VERIFIED : unverified());
  if (ended) await release(trx, engine, webhookId);
}

/** Makes the deliveries that wait for a verification due, in their order. */
async function release(trx: Knex.Transaction, engine: Engine, webhookId: string): Promise<void> {
  await trx("deliveries")
    .where(pendingWebhook(engine).column as "webhook_id", webhookId)
    .where({ status: "pending" })
    .where("due_at", ">", Date.now())
    .whereNull("leased_by")
    .update({ due_at: trx.ref("created_at") });
}

/**
 * Postpones deliveries to unverified webhooks until the time for the verification ends. The lock on the webhooks orders
 * this before the end of a verification, which releases the deliveries, or prevents it.
 */
export async function holdUnverified(
  trx: Knex.Transaction,
  engine: Engine,
  keys: Key[],
  now: number,
): Promise<void> {
  const waiting = await lockUnverified(trx, engine, new Set(keys.map(({ webhook_id }) => webhook_id)), now);
  const held = keys.filter(({ webhook_id }) => waiting.has(webhook_id));
  if (held.length === 0) return;
  await trx("deliveries")
    .whereIn(["webhook_id", "event_id"], pairsOf(held))
    .where("due_at", "<=", now)
    .update({
      due_at: trx.raw(
        "(select verification_expires_at from webhooks where webhooks.id = deliveries.webhook_id)",
      ),
    });
}

/** Locks webhooks, and returns until when the deliveries of each unverified one wait. */
export async function lockUnverified(
  trx: Knex.Transaction,
  engine: Engine,
  ids: Iterable<string>,
  now: number,
): Promise<Map<string, number>> {
  const webhooks = await trx("webhooks")
    .whereIn("id", [...ids])
    .where("verification_expires_at", ">", now)
    .orderBy("id")
    .forUpdate()
    .select("id", "verification_event_id", "verification_expires_at");
  const waiting = new Map<string, number>();
  for (const { id, verification_event_id, verification_expires_at } of webhooks) {
    const test = await trx("deliveries")
      .where({ webhook_id: id, event_id: verification_event_id ?? "" })
      .first("status");
    if (test?.status === "pending") {
      waiting.set(id, verification_expires_at as number);
      continue;
    }
    // A process of an earlier version delivered the test event, and doesn't know what it is for.
    await trx("webhooks")
      .where({ id })
      .update(test?.status === "succeeded" ? VERIFIED : unverified());
    await release(trx, engine, id);
  }
  return waiting;
}
