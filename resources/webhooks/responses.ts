import type { ServiceResponse } from "../http/response.ts";
import { toPayload } from "./payload.ts";
import { toDeliveryView, toWebhookView } from "./schema.ts";
import type { WebhookWithSecret } from "./service.ts";
import type { Delivery } from "./types.ts";

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
  return { status: 202, body: toDeliveryView(delivery, toPayload(delivery.event, shortUrl)) };
}
