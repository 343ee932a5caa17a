import type { z } from "zod";
import { type EventData, toPublicData } from "../events/public-data.ts";
import type { ServiceResponse } from "../http/response.ts";
import type { deliverySchema, webhookSchema } from "./schema.ts";
import type { DeliveredEvent, Delivery, Webhook, WebhookWithSecret } from "./types.ts";

/**
 * Returns the body of an event's deliveries, the same in every attempt (Standard Webhooks 1.0.0, "Payload structure"): its
 * public data, or the link itself for an event about a link.
 */
export function toPayload(event: DeliveredEvent, shortUrl: string) {
  const data = toPublicData(event, shortUrl);
  return {
    type: event.type,
    timestamp: toTime(event.createdAt),
    data: "link" in data ? (data.link as EventData) : data,
  };
}

/** Returns a webhook as API responses show it, without its secret. */
export function toWebhookView(webhook: Webhook): z.output<typeof webhookSchema> {
  const { id, url, events, enabled, verified, createdAt, updatedAt, createdBy, createdVia } = webhook;
  return {
    id,
    url,
    events,
    enabled,
    verified,
    created_at: toTime(createdAt),
    updated_at: toTime(updatedAt),
    created_by: createdBy,
    created_via: createdVia,
  };
}

/** Returns a delivery as API responses show it. */
export function toDeliveryView(
  { event, status, attempts, nextAttemptAt }: Delivery,
  shortUrl: string,
): z.output<typeof deliverySchema> {
  return {
    id: event.id,
    type: event.type,
    status,
    attempts: attempts.map((attempt) => ({ ...attempt, at: toTime(attempt.at) })),
    next_attempt_at: nextAttemptAt === null ? null : toTime(nextAttemptAt),
    created_at: toTime(event.createdAt),
    request: toPayload(event, shortUrl),
  };
}

/** Returns the 201 response for a new webhook. */
export function createdWebhook(created: WebhookWithSecret): ServiceResponse {
  const { headers, body } = webhookWithSecret(created);
  return { status: 201, headers: { ...headers, Location: `/v1/webhooks/${created.webhook.id}` }, body };
}

/** Returns the 200 response for a webhook whose secret was just replaced. */
export function webhookWithSecret({ webhook, secret }: WebhookWithSecret): ServiceResponse {
  return {
    status: 200,
    headers: { "Cache-Control": "no-store" },
    body: { ...toWebhookView(webhook), secret },
  };
}

/** Returns the 202 response for a queued delivery. */
export function queuedDelivery(delivery: Delivery, shortUrl: string): ServiceResponse {
  return { status: 202, body: toDeliveryView(delivery, shortUrl) };
}

function toTime(at: number): string {
  return new Date(at).toISOString();
}
