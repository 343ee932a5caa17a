import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { WebhookStore } from "../../resources/webhooks/types.ts";
import type { Database } from "../database/index.ts";
import { eventRow, type Outbox } from "../events/outbox.ts";
import { deliveriesOf, toDelivery } from "./delivery-row.ts";
import { findForUpdate, webhookEvent } from "./queries.ts";

/** The part of the webhook store that is about deliveries. */
export type DeliveryStore = Pick<WebhookStore, "test" | "nextAttemptAt" | "deliveries" | "resend">;

/** Creates the delivery store of a database. */
export function createDeliveryStore({ knex, transaction }: Database, outbox: Outbox): DeliveryStore {
  async function find(organizationId: string, id: string, eventId: string) {
    const row = await deliveriesOf(knex, organizationId, id).where("d.event_id", eventId).first();
    return row && toDelivery(row);
  }

  return {
    async test(organizationId, id, actor) {
      const eventId = await transaction((trx) => recordTest(trx, organizationId, id, actor));
      outbox.notify();
      return eventId === undefined ? undefined : find(organizationId, id, eventId);
    },

    async nextAttemptAt(organizationId, id) {
      const pending = deliveriesOf(knex, organizationId, id).where("d.status", "pending");
      const next = await pending.whereNotNull("d.due_at").orderBy("d.due_at").first();
      return next?.dueAt ?? null;
    },

    async deliveries(organizationId, id, limit, before) {
      const query = deliveriesOf(knex, organizationId, id).orderBy("d.event_id", "desc").limit(limit);
      if (before) query.where("d.event_id", "<", before);
      return (await query).map(toDelivery);
    },

    async resend(organizationId, id, eventId) {
      if (!(await find(organizationId, id, eventId))) return undefined;
      const now = Date.now();
      await unblock(knex, id);
      await knex("deliveries")
        .where({ webhook_id: id, event_id: eventId })
        .where((unleased) => unleased.whereNull("leased_by").orWhere("due_at", "<=", now))
        .update({ status: "pending", attempts: 0, due_at: now, leased_by: null });
      outbox.notify();
      return find(organizationId, id, eventId);
    },
  };
}

/** Allows attempts after repeated failures, since a user who asks for one expects it now. */
async function unblock(q: Knex, id: string): Promise<void> {
  await q("webhooks").where({ id }).whereNotNull("blocked_until").update({ blocked_until: null });
}

/** Records a test event with a single delivery, bypassing the outbox, which would add one for every subscribed webhook. */
async function recordTest(
  trx: Knex.Transaction,
  organizationId: string,
  id: string,
  actor: Actor,
): Promise<string | undefined> {
  const webhook = await findForUpdate(trx, organizationId, id);
  if (!webhook) return undefined;
  await unblock(trx, id);
  const event = eventRow(actor, webhookEvent("webhook.test", webhook, { webhook_id: id }));
  await trx("events").insert(event);
  await trx("deliveries").insert({
    webhook_id: id,
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
