import { z } from "zod";
import { toPayload } from "../../webhooks/payload.ts";
import { createdWebhook, queuedDelivery, webhookWithSecret } from "../../webhooks/responses.ts";
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
import type { WebhookService } from "../../webhooks/service.ts";
import type { Delivery } from "../../webhooks/types.ts";
import { CREATES, READS, REPLACES, type Tool } from "../tool.ts";

const SHOWN_ONCE = "The secret is only returned once. Give it to the developer of the endpoint.";

const byId = z.strictObject({ id: z.string().describe("The ID of the webhook, such as whk_01J9….") });

/** Creates the tools for webhooks and their deliveries. */
export function webhookTools(webhooks: WebhookService, shortUrl: string): Tool[] {
  return [...readTools(webhooks), ...changeTools(webhooks), ...deliveryTools(webhooks, shortUrl)];
}

function readTools(webhooks: WebhookService): Tool[] {
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
      description: "Returns a webhook.",
      scopes: ["webhooks:read"],
      input: byId,
      output: webhookSchema,
      annotations: READS,
      run: async (caller, { id }) => toWebhookView(await webhooks.get(caller, id as string)),
    },
  ];
}

function changeTools(webhooks: WebhookService): Tool[] {
  const { create, update } = webhooks.schemas;
  return [
    {
      name: "create_webhook",
      title: "Create a webhook",
      description: `Creates a webhook, which sends events to a URL, signed following Standard Webhooks 1.0.0. ${SHOWN_ONCE}`,
      scopes: ["webhooks:write"],
      input: create,
      output: webhookWithSecretSchema,
      annotations: CREATES,
      operation: "createWebhook",
      run: async (caller, input) => createdWebhook(await webhooks.create(caller, input)),
    },
    {
      name: "update_webhook",
      title: "Update a webhook",
      description: "Updates only the given fields.",
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
      description: "Deletes a webhook and its delivery log. No more events are sent to it.",
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
      title: "Rotate a webhook's secret",
      description: `Creates a new signing secret. For 24 hours, events are signed with the previous one too. ${SHOWN_ONCE}`,
      scopes: ["webhooks:write"],
      input: byId,
      output: webhookWithSecretSchema,
      annotations: { ...REPLACES, idempotentHint: false },
      operation: "rotateWebhookSecret",
      run: async (caller, { id }) => webhookWithSecret(await webhooks.rotateSecret(caller, id as string)),
    },
  ];
}

function deliveryTools(webhooks: WebhookService, shortUrl: string): Tool[] {
  const view = (delivery: Delivery) => toDeliveryView(delivery, toPayload(delivery.event, shortUrl));
  return [
    {
      name: "test_webhook",
      title: "Test a webhook",
      description: "Sends a webhook.test event to a webhook. Use list_webhook_deliveries to see the result.",
      scopes: ["webhooks:write"],
      input: byId,
      output: deliverySchema,
      annotations: { ...CREATES, openWorldHint: true },
      operation: "testWebhook",
      run: async (caller, { id }) => queuedDelivery(await webhooks.test(caller, id as string), shortUrl),
    },
    {
      name: "list_webhook_deliveries",
      title: "List webhook deliveries",
      description: "Lists the deliveries of a webhook, newest first, with their payloads and attempts.",
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
      title: "Resend a webhook delivery",
      description: "Resends a delivery with the same ID.",
      scopes: ["webhooks:write"],
      input: z.strictObject({
        ...byId.shape,
        delivery_id: z.string().describe("The ID of the delivery, such as evt_01J9…."),
      }),
      output: deliverySchema,
      annotations: { ...CREATES, openWorldHint: true },
      operation: "resendDelivery",
      run: async (caller, { id, delivery_id }) =>
        queuedDelivery(await webhooks.resend(caller, id as string, delivery_id as string), shortUrl),
    },
  ];
}
