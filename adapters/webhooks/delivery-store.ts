import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { WebhookStore } from "../../resources/webhooks/types.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { deliveriesOf, toDelivery } from "./delivery-row.ts";
import { findForUpdate } from "./queries.ts";
import { recordTest, startVerification } from "./verification.ts";

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
      const eventId = await transaction((trx) => recordTestFor(trx, outbox, organizationId, id, actor));
      outbox.notify();
      return eventId === undefined ? undefined : find(organizationId, id, eventId);
    },

    async nextAttemptAt(organizationId, id) {
      const pending = deliveriesOf(knex, organizationId, id).where("d.status", "pending");
      const next = await pending.whereNotNull("d.due_at").orderBy("d.due_at").first();
      return next && !next.waits ? next.dueAt : null;
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

/** Records a test event. If the webhook isn't verified, this is the event that verifies it. */
async function recordTestFor(
  trx: Knex.Transaction,
  outbox: Outbox,
  organizationId: string,
  id: string,
  actor: Actor,
): Promise<string | undefined> {
  const webhook = await findForUpdate(trx, organizationId, id);
  if (!webhook) return undefined;
  await unblock(trx, id);
  if (webhook.verification_expires_at === null) return recordTest(trx, outbox, webhook, actor, false);
  const verification = await startVerification(trx, outbox, webhook, actor);
  await trx("webhooks").where({ id }).update(verification);
  return verification.verification_event_id;
}
