import { isDeepStrictEqual } from "node:util";
import type { Knex } from "knex";
import type { By, EventType } from "../resources/events.ts";
import type { WebhookFields, WebhookStore } from "../resources/webhooks/ports.ts";
import type { Database } from "./database.ts";
import { deliveriesOf, toDelivery } from "./delivery-row.ts";
import { newId } from "./id.ts";
import { eventRow, type Happening, type Journal } from "./journal.ts";
import type { Seal } from "./seal.ts";
import { sealedFor, toColumns, toWebhook, type WebhookRow } from "./webhook-row.ts";

/** The webhooks of a database; their secrets are kept under `seal`. */
export function createWebhookStore(
  { knex, transaction }: Database,
  journal: Journal,
  seal: Seal,
): WebhookStore {
  const own = (organizationId: string, q: Knex = knex) =>
    q<WebhookRow>("webhooks").where({ organization_id: organizationId });
  const locked = (trx: Knex, organizationId: string, id: string): Promise<WebhookRow | undefined> =>
    own(organizationId, trx).where({ id }).forUpdate().first();
  const record = (trx: Knex.Transaction, by: By, type: EventType, row: WebhookRow, data: object) =>
    journal.record(trx, by, happened(type, row, data));

  return {
    create: (organizationId, by, fields, secret, limitsOf) =>
      transaction(async (trx) => {
        // Whoever makes a webhook for the organization waits here, so that each counts those before.
        const organization = await trx("organizations")
          .where({ id: organizationId })
          .whereNull("deleted_at")
          .forUpdate()
          .first("plan");
        const limit = organization ? limitsOf(organization.plan).webhooks : 0;
        const [row] = await own(organizationId, trx).count({ total: "*" });
        if (Number(row?.total) >= limit) return { limit };
        const now = Date.now();
        const id = newId("whk");
        const made: WebhookRow = {
          ...(toColumns(fields) as Required<ReturnType<typeof toColumns>>),
          id,
          organization_id: organizationId,
          secret: seal.close(secret, sealedFor(id)),
          previous_secret: null,
          previous_until: null,
          failing_since: null,
          paused_until: null,
          disabled_reason: null,
          created_at: now,
          updated_at: now,
        };
        await trx("webhooks").insert(made);
        await record(trx, by, "webhook.created", made, fields);
        return toWebhook(made);
      }),

    async find(organizationId, id) {
      const row = await own(organizationId).where({ id }).first();
      return row && toWebhook(row);
    },

    async list(organizationId, limit, before) {
      const query = own(organizationId).orderBy("id", "desc").limit(limit);
      if (before) query.where("id", "<", before);
      return (await query).map(toWebhook);
    },

    async count(organizationId) {
      const [row] = await own(organizationId).count({ total: "*" });
      return Number(row?.total);
    },

    update: (organizationId, id, changes, by) =>
      transaction(async (trx) => {
        const before = await locked(trx, organizationId, id);
        if (!before) return undefined;
        const webhook = toWebhook(before);
        const different = (Object.keys(changes) as (keyof WebhookFields)[]).filter(
          (name) => !isDeepStrictEqual(changes[name], webhook[name]),
        );
        if (different.length === 0) return webhook;
        const after: WebhookRow = {
          ...before,
          ...toColumns(changes),
          // Another address, or a person who looked at it: what was wrong before says nothing any more.
          failing_since: null,
          paused_until: null,
          disabled_reason: null,
          updated_at: Date.now(),
        };
        await own(organizationId, trx).where({ id }).update(after);
        const { url, events, enabled } = toWebhook(after);
        await record(trx, by, "webhook.updated", after, { url, events, enabled, changed: different });
        return toWebhook(after);
      }),

    rotateSecret: (organizationId, id, secret, previousUntil, by) =>
      transaction(async (trx) => {
        const before = await locked(trx, organizationId, id);
        if (!before) return undefined;
        const after: WebhookRow = {
          ...before,
          secret: seal.close(secret, sealedFor(id)),
          previous_secret: before.secret,
          previous_until: previousUntil,
          updated_at: Date.now(),
        };
        await own(organizationId, trx).where({ id }).update(after);
        await record(trx, by, "webhook.secret_rotated", after, {
          url: after.url,
          previous_expires_at: new Date(previousUntil).toISOString(),
        });
        return toWebhook(after);
      }),

    remove: (organizationId, id, by) =>
      transaction(async (trx) => {
        const before = await locked(trx, organizationId, id);
        if (!before) return false;
        await trx("deliveries").where({ webhook_id: id }).delete();
        await own(organizationId, trx).where({ id }).delete();
        const { url, events } = toWebhook(before);
        await record(trx, by, "webhook.deleted", before, { url, events });
        return true;
      }),

    async test(organizationId, id, by) {
      const eventId = await transaction(async (trx) => {
        const webhook = await locked(trx, organizationId, id);
        if (!webhook) return undefined;
        const event = eventRow(by, happened("webhook.test", webhook, { webhook_id: id }));
        await trx("events").insert(event);
        // Not by the journal: other webhooks are not told.
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
        return event.id as string;
      });
      journal.announce();
      return eventId === undefined ? undefined : one(organizationId, id, eventId);
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
      if (!(await one(organizationId, id, eventId))) return undefined;
      const now = Date.now();
      await knex("deliveries")
        .where({ webhook_id: id, event_id: eventId })
        .where((free) => free.whereNull("leased_by").orWhere("due_at", "<=", now))
        .update({ status: "pending", attempts: 0, due_at: now, leased_by: null });
      journal.announce();
      return one(organizationId, id, eventId);
    },
  };

  async function one(organizationId: string, id: string, eventId: string) {
    const row = await deliveriesOf(knex, organizationId, id).where("d.event_id", eventId).first();
    return row && toDelivery(row);
  }
}

function happened(type: EventType, { id, organization_id }: WebhookRow, data: object): Happening {
  return { organizationId: organization_id, type, subject: id, data };
}
