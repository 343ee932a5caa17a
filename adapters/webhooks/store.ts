import { isDeepStrictEqual } from "node:util";
import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Webhook, WebhookChanges, WebhookFields, WebhookStore } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { newId } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import type { WebhookRow } from "../database/tables.ts";
import type { Outbox } from "../events/outbox.ts";
import { createDeliveryStore, type DeliveryStore } from "./delivery-store.ts";
import { findForUpdate, webhookEvent, webhooksOf } from "./queries.ts";
import { encryptionContextOf, toColumns, toWebhook } from "./row.ts";

type Reads = Pick<WebhookStore, "find" | "list" | "count">;
type Writes = Omit<WebhookStore, keyof Reads | keyof DeliveryStore>;

/** Creates the webhook store of a database; signing secrets are encrypted with `encryption`. */
export function createWebhookStore(database: Database, outbox: Outbox, encryption: Encryption): WebhookStore {
  return {
    ...createReads(database),
    ...createWrites(database, outbox, encryption),
    ...createDeliveryStore(database, outbox),
  };
}

function createReads({ knex }: Database): Reads {
  return {
    async find(organizationId, id) {
      const row = await webhooksOf(knex, organizationId).where({ id }).first();
      return row && toWebhook(row);
    },

    async list(organizationId, limit, before) {
      const query = webhooksOf(knex, organizationId).orderBy("id", "desc").limit(limit);
      if (before) query.where("id", "<", before);
      return (await query).map(toWebhook);
    },

    count: (organizationId) => count(knex, organizationId),
  };
}

function createWrites({ transaction }: Database, outbox: Outbox, encryption: Encryption): Writes {
  const encrypt = (secret: string, id: string) => encryption.encrypt(secret, encryptionContextOf(id));
  return {
    create: (organizationId, actor, fields, secret, limitsOf) =>
      transaction(async (trx) => {
        // The lock serializes the creation of webhooks in an organization, so that the limit holds.
        const organization = await trx("organizations")
          .where({ id: organizationId })
          .whereNull("deleted_at")
          .forUpdate()
          .first("plan");
        const limit = organization ? limitsOf(organization.plan).webhooks : 0;
        if ((await count(trx, organizationId)) >= limit) return { limit };
        const id = newId("whk");
        const row = newRow(organizationId, id, fields, encrypt(secret, id));
        await trx("webhooks").insert(row);
        await outbox.record(trx, actor, webhookEvent("webhook.created", row, fields));
        return toWebhook(row);
      }),

    update: (organizationId, id, changes, actor) =>
      transaction(async (trx) => {
        const before = await findForUpdate(trx, organizationId, id);
        return before && update(trx, outbox, actor, before, changes);
      }),

    rotateSecret: (organizationId, id, secret, previousUntil, actor) =>
      transaction(async (trx) => {
        const before = await findForUpdate(trx, organizationId, id);
        if (!before) return undefined;
        const after: WebhookRow = {
          ...before,
          secret: encrypt(secret, id),
          previous_secret: before.secret,
          previous_until: previousUntil,
          updated_at: Date.now(),
        };
        await webhooksOf(trx, organizationId).where({ id }).update(after);
        const data = { url: after.url, previous_expires_at: new Date(previousUntil).toISOString() };
        await outbox.record(trx, actor, webhookEvent("webhook.secret_rotated", after, data));
        return toWebhook(after);
      }),

    viewSecret: (organizationId, id, actor) =>
      transaction(async (trx) => {
        const row = await webhooksOf(trx, organizationId).where({ id }).first();
        if (!row) return undefined;
        const secret = encryption.decrypt(row.secret, encryptionContextOf(id));
        await outbox.record(trx, actor, webhookEvent("webhook.secret_viewed", row, { url: row.url }));
        return { webhook: toWebhook(row), secret };
      }),

    remove: (organizationId, id, actor) =>
      transaction(async (trx) => {
        const before = await findForUpdate(trx, organizationId, id);
        if (!before) return false;
        await trx("deliveries").where({ webhook_id: id }).delete();
        await webhooksOf(trx, organizationId).where({ id }).delete();
        const { url, events } = toWebhook(before);
        await outbox.record(trx, actor, webhookEvent("webhook.deleted", before, { url, events }));
        return true;
      }),
  };
}

async function count(q: Knex, organizationId: string): Promise<number> {
  const [row] = await webhooksOf(q, organizationId).count({ total: "*" });
  return Number(row?.total);
}

function newRow(organizationId: string, id: string, fields: WebhookFields, secret: string): WebhookRow {
  const now = Date.now();
  return {
    ...(toColumns(fields) as Required<ReturnType<typeof toColumns>>),
    id,
    organization_id: organizationId,
    secret,
    previous_secret: null,
    previous_until: null,
    failing_since: null,
    paused_until: null,
    disabled_reason: null,
    created_at: now,
    updated_at: now,
  };
}

async function update(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  before: WebhookRow,
  changes: WebhookChanges,
): Promise<Webhook> {
  const webhook = toWebhook(before);
  const changed = changedFields(webhook, changes);
  if (Object.keys(changed).length === 0) return webhook;
  const after: WebhookRow = {
    ...before,
    ...toColumns(changed),
    // With a new URL, or after a user has looked at the webhook, past failures are no longer relevant.
    failing_since: null,
    paused_until: null,
    disabled_reason: null,
    updated_at: Date.now(),
  };
  await trx("webhooks").where({ id: before.id }).update(after);
  const { url, events, enabled } = toWebhook(after);
  const data = { url, events, enabled, changed: Object.keys(changed) };
  await outbox.record(trx, actor, webhookEvent("webhook.updated", after, data));
  return toWebhook(after);
}

/** Returns the changes that differ from the webhook. */
function changedFields(webhook: Webhook, changes: WebhookChanges): Partial<WebhookFields> {
  const entries = Object.entries(changes) as [keyof WebhookFields, unknown][];
  return Object.fromEntries(
    entries.filter(([name, value]) => value !== undefined && !isDeepStrictEqual(value, webhook[name])),
  );
}
