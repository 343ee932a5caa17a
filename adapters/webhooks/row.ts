import type { WebhookEvent } from "../resources/events.ts";
import type { Webhook, WebhookFields } from "../resources/webhooks/ports.ts";

/** A webhook as the table holds it. */
export type WebhookRow = {
  id: string;
  organization_id: string;
  url: string;
  /** Names, with a space between them. */
  events: string;
  enabled: boolean | number;
  secret: string;
  previous_secret: string | null;
  previous_until: number | null;
  failing_since: number | null;
  paused_until: number | null;
  disabled_reason: string | null;
  created_at: number;
  updated_at: number;
};

/** The columns of the fields that are given. */
export function toColumns({ events, ...same }: Partial<WebhookFields>) {
  return { ...same, ...(events && { events: events.join(" ") }) };
}

/** A webhook without its secrets. */
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

/** What a webhook's secrets are sealed for: in the row of another one they do not open. */
export function sealedFor(id: string): string {
  return `webhook:${id}`;
}
