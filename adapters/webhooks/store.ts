import { isDeepStrictEqual } from "node:util";
import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Webhook, WebhookChanges, WebhookFields, WebhookStore } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { newId } from "../crypto/ids.ts";
import { isDuplicate } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { WebhookRow } from "../database/tables.ts";
import type { Outbox } from "../events/outbox.ts";
import { createWebhookDeletion } from "./delete.ts";
import { createDeliveryStore, type DeliveryStore } from "./delivery-store.ts";
import { findForUpdate, webhookEvent, webhooksCreatedBy, webhooksOf } from "./queries.ts";
import { auditedFields, createWebhookRows, encryptionContextOf, type WebhookRows } from "./row.ts";
import { redactUrl } from "./url.ts";
import { dayOf } from "./usage.ts";
import { verificationOfChanged, verificationOfNew } from "./verification.ts";

type Reads = Pick<WebhookStore, "find" | "list" | "count" | "listCreatedHosts" | "countDeliveriesToday">;
type Writes = Omit<WebhookStore, keyof Reads | keyof DeliveryStore>;

/** Creates the webhook store of a database; signing secrets are encrypted with `encryption`. */
export function createWebhookStore(database: Database, outbox: Outbox, encryption: Encryption): WebhookStore {
  const rows = createWebhookRows(encryption);
  return {
    ...createReads(database, rows),
    ...createWrites(database, outbox, encryption, rows),
    ...createDeliveryStore(database, outbox),
  };
}

function createReads({ knex }: Database, { toWebhook }: WebhookRows): Reads {
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

    async listCreatedHosts(organizationId, creator) {
      // Without the URLs, so webhooks whose URL can't be decrypted are listed, and can be deleted.
      const hosts = await webhooksCreatedBy(knex, organizationId, creator).pluck("host");
      return hosts.map((host) => host ?? "");
    },

    async countDeliveriesToday(organizationId) {
      const usage = await knex("delivery_usage")
        .where({ organization_id: organizationId, day: dayOf(Date.now()) })
        .first("deliveries");
      return usage?.deliveries ?? 0;
    },
  };
}

function createWrites(
  { transaction }: Database,
  outbox: Outbox,
  encryption: Encryption,
  rows: WebhookRows,
): Writes {
  const { toWebhook } = rows;
  const deletion = createWebhookDeletion(outbox, rows);
  const encrypt = (secret: string, id: string) => encryption.encrypt(secret, encryptionContextOf(id));
  return {
    create: (organizationId, actor, fields, secret, limitsOf) =>
      orDuplicate(
        transaction(async (trx) => {
          // The lock serializes the creation of webhooks in an organization, so that the limit holds.
          const organization = await trx("organizations")
            .where({ id: organizationId })
            .whereNull("deleted_at")
            .forUpdate()
            .first("plan");
          const limit = organization ? limitsOf(organization.plan).webhooks : 0;
          if ((await count(trx, organizationId)) >= limit) return { limit };
          if (!(await isAuthorized(trx, organizationId, actor))) return { isRevoked: true };
          const id = newId("whk");
          const owner = { id, organization_id: organizationId };
          const row = {
            ...newRow(owner, actor, rows.toColumns(owner, fields), encrypt(secret, id)),
            ...(await verificationOfNew(trx, outbox, owner, actor, fields)),
          };
          await trx("webhooks").insert(row);
          await outbox.record(trx, actor, webhookEvent("webhook.created", row, auditedFields(fields)));
          return toWebhook(row);
        }),
      ),

    update: (organizationId, id, changes, actor) =>
      orDuplicate(
        transaction(async (trx) => {
          const before = await findForUpdate(trx, organizationId, id);
          return before && update(trx, outbox, actor, rows, before, changes);
        }),
      ),

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
        const data = {
          url: redactUrl(toWebhook(after).url),
          previous_expires_at: new Date(previousUntil).toISOString(),
        };
        await outbox.record(trx, actor, webhookEvent("webhook.secret_rotated", after, data));
        return toWebhook(after);
      }),

    viewSecret: (organizationId, id, actor) =>
      transaction(async (trx) => {
        const row = await webhooksOf(trx, organizationId).where({ id }).first();
        if (!row) return undefined;
        const webhook = toWebhook(row);
        const secret = encryption.decrypt(row.secret, encryptionContextOf(id));
        await outbox.record(
          trx,
          actor,
          webhookEvent("webhook.secret_viewed", row, { url: redactUrl(webhook.url) }),
        );
        return { webhook, secret };
      }),

    remove: (organizationId, id, actor) =>
      transaction(async (trx) => {
        const before = await findForUpdate(trx, organizationId, id);
        if (!before) return false;
        await deletion.remove(trx, actor, [before]);
        return true;
      }),
  };
}

/**
 * Returns whether an app that acts for a user is still authorized. A revocation that deletes what the app has created takes
 * the same lock, and may have come after the check of the token.
 */
async function isAuthorized(trx: Knex.Transaction, organizationId: string, actor: Actor): Promise<boolean> {
  if (actor.via === undefined) return true;
  const grant = await trx("grants")
    .where({ organization_id: organizationId, user_id: actor.id, client_id: actor.via })
    .whereNull("revoked_at")
    .first("id");
  return grant !== undefined;
}

/** Resolves to `isDuplicate` if the organization has another webhook with the same URL. */
async function orDuplicate<T>(change: Promise<T>): Promise<T | { isDuplicate: true }> {
  try {
    return await change;
  } catch (error) {
    if (isDuplicate(error)) return { isDuplicate: true };
    throw error;
  }
}

async function count(q: Knex, organizationId: string): Promise<number> {
  const [row] = await webhooksOf(q, organizationId).count({ total: "*" });
  return Number(row?.total);
}

/** The columns of a webhook whose endpoint is not known to have failed. */
const HEALTHY = {
  failing_since: null,
  slow_since: null,
  failures: 0,
  paused_until: null,
  blocked_until: null,
  disabled_reason: null,
};

function newRow(
  owner: Pick<WebhookRow, "id" | "organization_id">,
  actor: Actor,
  columns: ReturnType<WebhookRows["toColumns"]>,
  secret: string,
): Omit<WebhookRow, "verification_event_id" | "verification_expires_at"> {
  const now = Date.now();
  return {
    ...(columns as Required<typeof columns>),
    ...owner,
    secret,
    previous_secret: null,
    previous_until: null,
    ...HEALTHY,
    created_by: actor.id,
    created_via: actor.via ?? null,
    created_at: now,
    updated_at: now,
  };
}

async function update(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  { toWebhook, toColumns }: WebhookRows,
  before: WebhookRow,
  changes: WebhookChanges,
): Promise<Webhook> {
  const webhook = toWebhook(before);
  const changed = changedFields(webhook, changes);
  if (Object.keys(changed).length === 0) return webhook;
  const after: WebhookRow = {
    ...before,
    ...toColumns(before, changed),
    // With a new URL, or after a user has looked at the webhook, past failures are no longer relevant.
    ...HEALTHY,
    ...(await verificationOfChanged(trx, outbox, before, actor, changed)),
    updated_at: Date.now(),
  };
  await trx("webhooks").where({ id: before.id }).update(after);
  const { url, events, enabled } = toWebhook(after);
  const data = { ...auditedFields({ url, events, enabled }), changed: Object.keys(changed) };
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
