import type { Knex } from "knex";
import type { EventType } from "../../resources/events/types.ts";
import type { WebhookRow } from "../database/tables.ts";
import type { DomainEvent } from "../events/outbox.ts";

/** Queries the webhooks of an organization. */
export function webhooksOf(q: Knex, organizationId: string) {
  return q("webhooks").where({ organization_id: organizationId });
}

/** A user who created webhooks; with `clientId`, only through this client. */
export type WebhookCreator = { userId: string; clientId?: string };

/** Queries the webhooks of an organization that a user or app has created. */
export function webhooksCreatedBy(q: Knex, organizationId: string, { userId, clientId }: WebhookCreator) {
  return webhooksOf(q, organizationId).where({
    created_by: userId,
    ...(clientId !== undefined && { created_via: clientId }),
  });
}

/** Finds a webhook and locks its row until the end of the transaction. */
export function findForUpdate(
  trx: Knex.Transaction,
  organizationId: string,
  id: string,
): Promise<WebhookRow | undefined> {
  return webhooksOf(trx, organizationId).where({ id }).forUpdate().first();
}

/** Returns an event about a webhook. */
export function webhookEvent(
  type: EventType,
  { id, organization_id }: Pick<WebhookRow, "id" | "organization_id">,
  data: object,
): DomainEvent {
  return { organizationId: organization_id, type, subject: id, data };
}
