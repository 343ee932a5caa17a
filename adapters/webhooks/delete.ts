import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { WebhookRow } from "../database/tables.ts";
import type { Outbox } from "../events/outbox.ts";
import { type WebhookCreator, webhookEvent, webhooksCreatedBy } from "./queries.ts";
import { auditedFields, type WebhookRows } from "./row.ts";

/** Deletes webhooks with their delivery logs. Part of the caller's transaction. */
export type WebhookDeletion = {
  /** Deletes webhooks whose rows the caller has locked. */
  remove(trx: Knex.Transaction, actor: Actor, rows: WebhookRow[]): Promise<void>;
  /**
   * Deletes what a user or app has created. Locks the organization, so it comes before anything that locks memberships
   * or grants.
   */
  removeCreated(
    trx: Knex.Transaction,
    actor: Actor,
    organizationId: string,
    creator: WebhookCreator,
  ): Promise<void>;
};

/** Creates the deletion of webhooks. */
export function createWebhookDeletion(outbox: Outbox, { toDeleted }: WebhookRows): WebhookDeletion {
  const deletion: WebhookDeletion = {
    async remove(trx, actor, rows) {
      const ids = rows.map(({ id }) => id);
      await trx("deliveries").whereIn("webhook_id", ids).delete();
      await trx("webhooks").whereIn("id", ids).delete();
      const events = rows.map((row) => webhookEvent("webhook.deleted", row, auditedFields(toDeleted(row))));
      await outbox.record(trx, actor, ...events);
    },

    async removeCreated(trx, actor, organizationId, creator) {
      // The creation of a webhook takes the same lock.
      await trx("organizations").where({ id: organizationId }).forUpdate().first("id");
      const rows = await webhooksCreatedBy(trx, organizationId, creator).orderBy("id").forUpdate();
      if (rows.length > 0) await deletion.remove(trx, actor, rows);
    },
  };
  return deletion;
}
