import type { Knex } from "knex";
import type { WebhookEvent } from "../../resources/events/types.ts";
import type { Delivery, DeliveryStatus } from "../../resources/webhooks/types.ts";

/** A delivery with its event. */
export type DeliveryRow = {
  eventId: string;
  type: WebhookEvent;
  data: string;
  createdAt: number;
  status: DeliveryStatus;
  dueAt: number | null;
  log: string;
  /** Whether it waits for the verification of the webhook. */
  waits?: boolean | number;
};

/** The columns of a delivery `d` with its event `e`. */
export const DELIVERY_COLUMNS = {
  eventId: "e.id",
  type: "e.type",
  data: "e.data",
  createdAt: "e.created_at",
  status: "d.status",
  dueAt: "d.due_at",
  log: "d.log",
};

// Whether the delivery of a webhook `w` waits for its verification.
const WAITS = "(w.verification_expires_at is not null and coalesce(w.verification_event_id, '') <> e.id)";

/** Queries the deliveries of a webhook of an organization. */
export function deliveriesOf(
  knex: Knex,
  organizationId: string,
  webhookId: string,
): Knex.QueryBuilder<DeliveryRow, DeliveryRow[]> {
  return knex("deliveries as d")
    .join("webhooks as w", "w.id", "d.webhook_id")
    .join("events as e", "e.id", "d.event_id")
    .where({ "d.webhook_id": webhookId, "w.organization_id": organizationId })
    .select(DELIVERY_COLUMNS, knex.raw(`${WAITS} as waits`));
}

/** Converts a row to a delivery. */
export function toDelivery(row: DeliveryRow): Delivery {
  const { eventId, type, data, createdAt, status, dueAt, log, waits } = row;
  return {
    event: { id: eventId, type, data: JSON.parse(data), createdAt },
    status,
    attempts: JSON.parse(log),
    nextAttemptAt: waits ? null : dueAt,
  };
}
