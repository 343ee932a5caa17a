import type { Answer } from "../answer.ts";
import { toMessage } from "./message.ts";
import type { Delivery } from "./ports.ts";
import { toDeliveryView, toWebhookView } from "./schema.ts";
import type { WithSecret } from "./webhooks.ts";

/** A webhook that was not there before. */
export function madeWebhook(made: WithSecret): Answer {
  const { body } = webhookWithSecret(made);
  return { status: 201, headers: { Location: `/v1/webhooks/${made.webhook.id}` }, body };
}

/** A webhook with the secret that it has from now on. */
export function webhookWithSecret({ webhook, secret }: WithSecret): Answer {
  return { status: 200, body: { ...toWebhookView(webhook), secret } };
}

/** A delivery that is under way. */
export function startedDelivery(delivery: Delivery, shortUrl: string): Answer {
  return { status: 202, body: toDeliveryView(delivery, toMessage(delivery.event, shortUrl)) };
}
