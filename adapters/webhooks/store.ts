import { isDeepStrictEqual } from "node:util";
import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { limitsOf } from "../../resources/plans.ts";
import type { Webhook, WebhookChanges, WebhookFields, WebhookStore } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { newId } from "../crypto/ids.ts";
import { ifDuplicate } from "../database/errors.ts";
import type { Database } from "../database/index.ts";
import type { WebhookRow } from "../database/tables/webhooks.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { lockOrganization } from "../locks.ts";
import { createDeliveryLog, unblock } from "./delivery-log.ts";
import { createHealth } from "./health.ts";
import {
  auditedDeletion,
  auditedFields,
  encryptionContextOf,
  redactUrl,
  toWebhook as rowToWebhook,
  toColumns,
  webhookEvent,
} from "./row.ts";
import { dayOf } from "./usage.ts";
import { createVerification, unverified, type Verification } from "./verification.ts";

export function createWebhookStore(database: Database, outbox: Outbox, encryption: Encryption): WebhookStore {
  const { knex } = database;
  const verification = createVerification(database, outbox);
  const toWebhook = (row: WebhookRow) => rowToWebhook(encryption, row);
  const log = createDeliveryLog(database, outbox, encryption);
  const encrypt = (secret: string, id: string) => encryption.encrypt(secret, encryptionContextOf(id));

  /** Runs `work` while the webhook is locked. Resolves to undefined if there is none. */
  function changeWebhook<T>(
    organizationId: string,
    id: string,
    actor: Actor,
    work: (change: Change, row: WebhookRow) => Promise<T>,
  ): Promise<T | undefined> {
    return outbox.change(actor, async (change) => {
      const row = await webhooksOf(change.trx, organizationId).where({ id }).forUpdate().first();
      return row && work(change, row);
    });
  }

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

    create: (organizationId, actor, fields, secret) =>
      outbox
        .change(actor, async (change) => {
          const { trx, record } = change;
          // The lock serializes the creation of webhooks in an organization, so that the limit holds.
          const organization = await lockOrganization(trx, organizationId);
          const limit = organization ? limitsOf(organization.plan).webhooks : 0;
          if ((await count(trx, organizationId)) >= limit) return { limit };
          if (!(await isAuthorized(trx, organizationId, actor))) return { isRevoked: true as const };
          const id = newId("whk");
          const owner = { id, organization_id: organizationId };
          const now = Date.now();
          const row: WebhookRow = {
            ...(toColumns(encryption, owner, fields) as Required<ReturnType<typeof toColumns>>),
            ...owner,
            secret: encrypt(secret, id),
            previous_secret: null,
            previous_until: null,
            ...HEALTHY,
            last_success_at: null,
            // A disabled webhook is verified when it is enabled.
            ...(fields.enabled ? await verification.start(change, owner) : unverified()),
            created_by: actor.id,
            created_via: actor.via ?? null,
            created_at: now,
            updated_at: now,
          };
          await trx("webhooks").insert(row);
          await record(webhookEvent("webhook.created", row, auditedFields(fields)));
          return toWebhook(row);
        })
        .catch(ifDuplicate({ isDuplicate: true })),

    update: (organizationId, id, changes, actor, isCurrent) =>
      changeWebhook(organizationId, id, actor, async (change, before) => {
        const { trx, record } = change;
        const webhook = toWebhook(before);
        if (isCurrent?.(webhook) === false) return "stale";
        const changed = changedFields(webhook, changes);
        if (Object.keys(changed).length === 0) return webhook;
        const after: WebhookRow = {
          ...before,
          ...toColumns(encryption, before, changed),
          // With a new URL, or after a user has looked at the webhook, past failures are no longer relevant.
          ...HEALTHY,
          ...(changed.url !== undefined && { last_success_at: null }),
          ...(await verificationOf(change, before, changed)),
          updated_at: Date.now(),
        };
        await trx("webhooks").where({ id }).update(after);
        const { url, events, enabled } = toWebhook(after);
        const data = { ...auditedFields({ url, events, enabled }), changed: Object.keys(changed) };
        await record(webhookEvent("webhook.updated", after, data));
        return toWebhook(after);
      }).catch(ifDuplicate({ isDuplicate: true })),

    rotateSecret: (organizationId, id, secret, previousUntil, actor) =>
      changeWebhook(organizationId, id, actor, async ({ trx, record }, before) => {
        const after: WebhookRow = {
          ...before,
          secret: encrypt(secret, id),
          previous_secret: before.secret,
          previous_until: previousUntil,
          updated_at: Date.now(),
        };
        await trx("webhooks").where({ id }).update(after);
        const webhook = toWebhook(after);
        const previous_expires_at = new Date(previousUntil).toISOString();
        const data = { url: redactUrl(webhook.url), previous_expires_at };
        await record(webhookEvent("webhook.secret_rotated", after, data));
        return webhook;
      }),

    viewSecret: (organizationId, id, actor) =>
      changeWebhook(organizationId, id, actor, async ({ record }, row) => {
        const webhook = toWebhook(row);
        const secret = encryption.decrypt(row.secret, encryptionContextOf(id));
        const data = { url: redactUrl(webhook.url) };
        await record(webhookEvent("webhook.secret_viewed", row, data));
        return { webhook, secret };
      }),

    async remove(organizationId, id, actor, isCurrent) {
      const removed = await changeWebhook<true | "stale">(organizationId, id, actor, async (change, row) => {
        // A URL that can't be decrypted is not needed to delete a webhook.
        if (isCurrent && !isCurrent(toWebhook(row))) return "stale";
        await removeWebhooks(change, encryption, [row]);
        return true;
      });
      return removed ?? false;
    },

    async test(organizationId, id, actor) {
      const eventId = await changeWebhook(organizationId, id, actor, async (change, webhook) => {
        await unblock(change.trx, id);
        if (webhook.verification_expires_at === null) return verification.recordTest(change, webhook);
        const started = await verification.start(change, webhook);
        await change.trx("webhooks").where({ id }).update(started);
        return started.verification_event_id;
      });
      outbox.notify();
      return eventId === undefined ? undefined : log.findDelivery(organizationId, id, eventId);
    },

    async countFailing(organizationId) {
      const failing = webhooksOf(knex, organizationId).where({ enabled: true }).whereNotNull("failing_since");
      // The page of an unverified webhook says why.
      const [row] = await failing.whereNull("verification_expires_at").count({ total: "*" });
      return Number(row?.total);
    },

    health: createHealth(database),
    ...log,
  };

  async function verificationOf(
    change: Change,
    before: WebhookRow,
    { url, enabled }: Partial<WebhookFields>,
  ): Promise<Partial<Verification>> {
    const isVerified = before.verification_expires_at === null;
    if (url === undefined && (isVerified || !enabled)) return {};
    return (enabled ?? before.enabled) ? verification.start(change, before) : unverified();
  }
}

function webhooksOf(q: Knex, organizationId: string) {
  return q("webhooks").where({ organization_id: organizationId });
}

type WebhookCreator = { userId: string; clientId?: string };

function webhooksCreatedBy(q: Knex, organizationId: string, { userId, clientId }: WebhookCreator) {
  const via = clientId === undefined ? {} : { created_via: clientId };
  return webhooksOf(q, organizationId).where({ created_by: userId, ...via });
}

/** A revocation takes the same lock, and may have come after the check of the token. */
async function isAuthorized(trx: Knex.Transaction, organizationId: string, actor: Actor): Promise<boolean> {
  if (actor.via === undefined) return true;
  const grant = await trx("grants")
    .where({ organization_id: organizationId, user_id: actor.id, client_id: actor.via })
    .whereNull("revoked_at")
    .first("id");
  return grant !== undefined;
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

function changedFields(webhook: Webhook, changes: WebhookChanges): Partial<WebhookFields> {
  const entries = Object.entries(changes) as [keyof WebhookFields, unknown][];
  return Object.fromEntries(
    entries.filter(([name, value]) => value !== undefined && !isDeepStrictEqual(value, webhook[name])),
  );
}

async function removeWebhooks(
  { trx, record }: Change,
  encryption: Encryption,
  rows: WebhookRow[],
): Promise<void> {
  const ids = rows.map(({ id }) => id);
  await trx("deliveries").whereIn("webhook_id", ids).delete();
  await trx("webhooks").whereIn("id", ids).delete();
  await record(...rows.map((row) => webhookEvent("webhook.deleted", row, auditedDeletion(encryption, row))));
}

/** Deletes what a user or app has created. Comes before anything that locks memberships or grants. */
export async function removeCreatedWebhooks(
  change: Change,
  encryption: Encryption,
  organizationId: string,
  creator: WebhookCreator,
): Promise<void> {
  const { trx } = change;
  // The creation of a webhook takes the same lock.
  await lockOrganization(trx, organizationId);
  const rows = await webhooksCreatedBy(trx, organizationId, creator).orderBy("id").forUpdate();
  if (rows.length > 0) await removeWebhooks(change, encryption, rows);
}
