import type { WebhookEvent } from "../../resources/events/types.ts";
import type { Webhook, WebhookFields } from "../../resources/webhooks/types.ts";
import type { WebhookRow } from "../database/tables.ts";

/** Converts fields to columns; event types are stored as a space-separated list. */
export function toColumns({ events, ...same }: Partial<WebhookFields>) {
  return { ...same, ...(events && { events: events.join(" ") }) };
}

/** Converts a row to a webhook, without its secrets. */
export function toWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    organizationId: row.organization_id,
    url: row.url,
    events: row.events.split(" ") as WebhookEvent[],
    enabled: Boolean(row.enabled),
    disabledReason: row.disabled_reason,
    failingSince: row.failing_since,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** Returns the encryption context of a webhook's secrets. A ciphertext copied to another row can't be decrypted there. */
export function encryptionContextOf(id: string): string {
  return `webhook:${id}`;
}
