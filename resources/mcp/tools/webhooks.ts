import { z } from "zod";
import { madeWebhook, startedDelivery, webhookWithSecret } from "../../webhooks/answers.ts";
import { toMessage } from "../../webhooks/message.ts";
import type { Delivery } from "../../webhooks/ports.ts";
import {
  deliveryPageSchema,
  deliverySchema,
  pageQuery,
  toDeliveryView,
  toWebhookView,
  webhookPageSchema,
  webhookSchema,
  webhookWithSecretSchema,
} from "../../webhooks/schema.ts";
import type { Webhooks } from "../../webhooks/webhooks.ts";
import { ADDS, READS, REPLACES, type Tool } from "../tool.ts";

const SHOWN_ONCE = "The secret is shown this once: hand it to whoever runs the receiver.";

const byId = z.strictObject({ id: z.string().describe("The id of the webhook, such as whk_01J9….") });

/** The tools for webhooks. */
export function webhookTools(webhooks: Webhooks, shortUrl: string): Tool[] {
  const { create, update } = webhooks.schemas;
  const view = (delivery: Delivery) => toDeliveryView(delivery, toMessage(delivery.event, shortUrl));
  return [
    {
      name: "list_webhooks",
      title: "List webhooks",
      description: "Lists webhooks, newest first. Pass next_cursor as cursor for the next page.",
      scopes: ["webhooks:read"],
      input: pageQuery,
      output: webhookPageSchema,
      annotations: READS,
      run: async (caller, query) => {
        const { webhooks: page, nextCursor } = await webhooks.list(caller, query);
        return { data: page.map(toWebhookView), next_cursor: nextCursor };
      },
    },
    {
      name: "get_webhook",
      title: "Get a webhook",
      description: "Shows one webhook.",
      scopes: ["webhooks:read"],
      input: byId,
      output: webhookSchema,
      annotations: READS,
      run: async (caller, { id }) => toWebhookView(await webhooks.get(caller, id as string)),
    },
    {
      name: "create_webhook",
      title: "Create a webhook",
      description: `Has events sent to an address, signed as Standard Webhooks 1.0.0 says. ${SHOWN_ONCE}`,
      scopes: ["webhooks:write"],
      input: create,
      output: webhookWithSecretSchema,
      annotations: ADDS,
      operation: "createWebhook",
      run: async (caller, input) => madeWebhook(await webhooks.create(caller, input)),
    },
    {
      name: "update_webhook",
      title: "Change a webhook",
      description: "Changes the fields that are given and leaves the others.",
      scopes: ["webhooks:write"],
      input: z.strictObject({ ...byId.shape, ...update.shape }),
      output: webhookSchema,
      annotations: REPLACES,
      run: async (caller, { id, ...changes }) =>
        toWebhookView(await webhooks.update(caller, id as string, changes)),
    },
    {
      name: "delete_webhook",
      title: "Delete a webhook",
      description: "Deletes a webhook with its log: nothing more is sent to it.",
      scopes: ["webhooks:write"],
      input: byId,
      output: z.object({ deleted: z.literal(true), id: z.string() }),
      annotations: REPLACES,
      run: async (caller, { id }) => {
        await webhooks.remove(caller, id as string);
        return { deleted: true, id };
      },
    },
    {
      name: "rotate_webhook_secret",
      title: "Replace a webhook's secret",
      description: `Makes a new secret; for 24 hours the one before signs as well. ${SHOWN_ONCE}`,
      scopes: ["webhooks:write"],
      input: byId,
      output: webhookWithSecretSchema,
      annotations: { ...REPLACES, idempotentHint: false },
      operation: "rotateWebhookSecret",
      run: async (caller, { id }) => webhookWithSecret(await webhooks.rotateSecret(caller, id as string)),
    },
    {
      name: "test_webhook",
      title: "Test a webhook",
      description:
        "Sends a webhook.test event to one webhook. See list_webhook_deliveries for what came of it.",
      scopes: ["webhooks:write"],
      input: byId,
      output: deliverySchema,
      annotations: { ...ADDS, openWorldHint: true },
      operation: "testWebhook",
      run: async (caller, { id }) => startedDelivery(await webhooks.test(caller, id as string), shortUrl),
    },
    {
      name: "list_webhook_deliveries",
      title: "List what a webhook was told",
      description:
        "Lists the deliveries of a webhook, newest first, with the body that was sent and each attempt.",
      scopes: ["webhooks:read"],
      input: z.strictObject({ ...byId.shape, ...pageQuery.shape }),
      output: deliveryPageSchema,
      annotations: READS,
      run: async (caller, { id, ...query }) => {
        const { deliveries, nextCursor } = await webhooks.deliveries(caller, id as string, query);
        return { data: deliveries.map(view), next_cursor: nextCursor };
      },
    },
    {
      name: "resend_webhook_delivery",
      title: "Send a delivery again",
      description: "Tells a webhook of an event again, under the same id.",
      scopes: ["webhooks:write"],
      input: z.strictObject({
        ...byId.shape,
        delivery_id: z.string().describe("The id of the delivery, such as evt_01J9…."),
      }),
      output: deliverySchema,
      annotations: { ...ADDS, openWorldHint: true },
      operation: "resendDelivery",
      run: async (caller, { id, delivery_id }) =>
        startedDelivery(await webhooks.resend(caller, id as string, delivery_id as string), shortUrl),
    },
  ];
}
