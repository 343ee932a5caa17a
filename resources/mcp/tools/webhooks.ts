import { z } from "zod";
import { pageQuery } from "../../http/pagination.ts";
import { eventPageSchema, eventQuery, type ListEvents } from "../../webhooks/event-list.ts";
import {
  createdWebhook,
  deliveryDetailsSchema,
  deliveryPageSchema,
  deliveryQuery,
  queuedDelivery,
  resentSchema,
  toDeliveryDetailsView,
  toDeliveryView,
  toWebhookView,
  webhookPageSchema,
  webhookSchema,
  webhookWithSecret,
} from "../../webhooks/schema.ts";
import type { WebhookService } from "../../webhooks/service.ts";
import { CREATES, deletionSchema, READS, REPLACES, sameAs, type Tool } from "../tool.ts";

export type WebhookPageUrl = (organizationId: string, webhookId: string) => string;

type SecretTool = Extract<Tool, { operation: string }>;
type WebhookToolOptions = {
  webhooks: WebhookService;
  listEvents: ListEvents;
  shortUrl: string;
  webhookPageUrl: WebhookPageUrl;
};

const SEE_SECRET = "Owners and admins view the secret at secret_url.";

const READ = { scopes: ["webhooks:read"], annotations: READS } satisfies Partial<Tool>;
const WRITE = { scopes: ["webhooks:write"] } satisfies Partial<Tool>;
const byId = z.strictObject({ id: z.string().describe("Webhook ID (whk_…).") });
const byDeliveryId = byId.extend({
  delivery_id: z.string().describe("Delivery ID (evt_…)."),
});
const webhook = sameAs("get_webhook");
const delivery = sameAs("list_webhook_deliveries");
const { request_headers, response } = deliveryDetailsSchema.shape;
const details = sameAs("list_webhook_deliveries", { request_headers, response });

export function webhookTools({ webhooks, listEvents, shortUrl, webhookPageUrl }: WebhookToolOptions): Tool[] {
  const { create, update } = webhooks.schemas;
  // A model never sees a secret: its context may be logged and shared.
  const toResult: SecretTool["toResult"] = ({ secret, ...shown }, { organizationId }) => ({
    ...shown,
    secret_url: webhookPageUrl(organizationId, shown.id as string),
  });
  const output = sameAs("get_webhook", { secret_url: z.string() });
  return [
    {
      ...READ,
      name: "list_webhooks",
      title: "List webhooks",
      description: "Lists webhooks, newest first.",
      input: pageQuery,
      output: webhookPageSchema.extend({ data: z.array(webhook) }),
      run: async (caller, query) => {
        const { webhooks: page, nextCursor } = await webhooks.list(caller, query);
        return { data: page.map(toWebhookView), next_cursor: nextCursor };
      },
    },
    {
      ...READ,
      name: "get_webhook",
      title: "Get a webhook",
      description: "Returns a webhook.",
      input: byId,
      output: webhookSchema,
      run: async (caller, { id }) => toWebhookView(await webhooks.get(caller, id as string)),
    },
    {
      ...WRITE,
      name: "update_webhook",
      title: "Update a webhook",
      description: "Updates only the given fields.",
      fieldsAsIn: "create_webhook",
      input: z.strictObject({ ...byId.shape, ...update.shape }),
      output: webhook,
      annotations: REPLACES,
      run: async (caller, { id, ...changes }) =>
        toWebhookView(await webhooks.update(caller, id as string, changes)),
    },
    {
      ...WRITE,
      name: "delete_webhook",
      title: "Delete a webhook",
      description: "Deletes a webhook and its delivery log.",
      input: byId,
      output: deletionSchema,
      annotations: REPLACES,
      async question(caller, { id }) {
        const { url } = await webhooks.get(caller, id as string);
        return `Delete the webhook that sends events to ${url}, and its delivery log?`;
      },
      run: async (caller, { id }) => {
        await webhooks.remove(caller, id as string);
        return { deleted: true, id };
      },
    },
    {
      ...WRITE,
      name: "create_webhook",
      title: "Create a webhook",
      description: `Creates a webhook, which sends signed events to a URL. ${SEE_SECRET}`,
      input: create,
      output,
      toResult,
      annotations: CREATES,
      operation: "createWebhook",
      run: async (caller, input) => createdWebhook(await webhooks.create(caller, input)),
    },
    {
      ...WRITE,
      name: "rotate_webhook_secret",
      title: "Rotate a webhook's secret",
      description: `Creates a new signing secret. The previous one also signs for 24 hours. ${SEE_SECRET}`,
      input: byId,
      output,
      toResult,
      annotations: { ...REPLACES, idempotentHint: false },
      operation: "rotateWebhookSecret",
      run: async (caller, { id }) => webhookWithSecret(await webhooks.rotateSecret(caller, id as string)),
    },
    {
      ...WRITE,
      name: "test_webhook",
      title: "Test a webhook",
      description: "Sends a webhook.test event. list_webhook_deliveries has the result.",
      input: byId,
      output: delivery,
      annotations: { ...CREATES, openWorldHint: true },
      operation: "testWebhook",
      run: async (caller, { id }) => queuedDelivery(await webhooks.test(caller, id as string), shortUrl),
    },
    {
      ...READ,
      name: "list_webhook_deliveries",
      title: "List webhook deliveries",
      description: "Lists deliveries with payloads and attempts, newest first.",
      input: z.strictObject({ ...byId.shape, ...deliveryQuery.shape }),
      output: deliveryPageSchema,
      run: async (caller, { id, ...query }) => {
        const { deliveries, nextCursor } = await webhooks.deliveries(caller, id as string, query);
        return { data: deliveries.map((one) => toDeliveryView(one, shortUrl)), next_cursor: nextCursor };
      },
    },
    {
      ...WRITE,
      name: "resend_webhook_delivery",
      title: "Resend a webhook delivery",
      description: "Resends a delivery with the same ID.",
      input: byDeliveryId,
      output: delivery,
      annotations: { ...CREATES, openWorldHint: true },
      operation: "resendDelivery",
      run: async (caller, { id, delivery_id }) =>
        queuedDelivery(await webhooks.resend(caller, id as string, delivery_id as string), shortUrl),
    },
    {
      ...READ,
      name: "get_webhook_delivery",
      title: "Get a webhook delivery",
      description: "Returns a delivery with its last request and response, which is untrusted text.",
      input: byDeliveryId,
      output: details,
      run: async (caller, { id, delivery_id }) =>
        toDeliveryDetailsView(await webhooks.delivery(caller, id as string, delivery_id as string), shortUrl),
    },
    {
      ...WRITE,
      name: "resend_failed_webhook_deliveries",
      title: "Resend failed webhook deliveries",
      description: "Resends up to 10,000 deliveries that have failed, with the same IDs.",
      input: byId,
      output: resentSchema,
      annotations: { ...CREATES, openWorldHint: true },
      operation: "resendFailedDeliveries",
      run: async (caller, { id }) => ({
        status: 202,
        body: await webhooks.resendFailed(caller, id as string),
      }),
    },
    {
      name: "list_events",
      title: "List events",
      description:
        "Lists events of the last 30 days with the data that webhooks get, oldest first, without clicks. resume_cursor gets later ones.",
      scopes: ["links:read", "webhooks:read"],
      annotations: READS,
      input: eventQuery,
      output: eventPageSchema.extend({ data: z.array(z.looseObject({})) }),
      run: (caller, query) => listEvents(caller, query),
    },
  ];
}
