import { z } from "zod";
import {
  createdWebhook,
  queuedDelivery,
  toDeliveryView,
  toWebhookView,
  webhookWithSecret,
} from "../../webhooks/responses.ts";
import { deliveryPageSchema, pageQuery, webhookPageSchema, webhookSchema } from "../../webhooks/schema.ts";
import type { WebhookService } from "../../webhooks/service.ts";
import type { Delivery } from "../../webhooks/types.ts";
import { deletionSchema, notDeleted } from "../deletion.ts";
import { CREATES, READS, REPLACES, sameAs, type Tool } from "../tool.ts";

/** Returns the URL of a webhook's page in the dashboard. */
export type WebhookPageUrl = (organizationId: string, webhookId: string) => string;

type WebhookToolOptions = { webhooks: WebhookService; shortUrl: string; webhookPageUrl: WebhookPageUrl };

const SEE_SECRET = "Owners and admins view the secret at secret_url.";

const byId = z.strictObject({ id: z.string().describe("The webhook ID, such as whk_01J9….") });
const webhook = sameAs("get_webhook", "The webhook");
const delivery = sameAs("list_webhook_deliveries", "The delivery");

/** Creates the tools for webhooks and their deliveries. */
export function webhookTools({ webhooks, shortUrl, webhookPageUrl }: WebhookToolOptions): Tool[] {
  return [
    ...readTools(webhooks),
    ...changeTools(webhooks),
    ...secretTools(webhooks, webhookPageUrl),
    ...deliveryTools(webhooks, shortUrl),
  ];
}

function readTools(webhooks: WebhookService): Tool[] {
  return [
    {
      name: "list_webhooks",
      title: "List webhooks",
      description: "Lists webhooks, newest first.",
      scopes: ["webhooks:read"],
      input: pageQuery,
      output: webhookPageSchema.extend({ data: z.array(sameAs("get_webhook", "A webhook")) }),
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
  const { update } = webhooks.schemas;
  return [
    {
      name: "update_webhook",
      title: "Update a webhook",
      description: "Updates only the given fields.",
      scopes: ["webhooks:write"],
      input: z.strictObject({ ...byId.shape, ...update.shape }),
      output: webhook,
      annotations: REPLACES,
      run: async (caller, { id, ...changes }) =>
        toWebhookView(await webhooks.update(caller, id as string, changes)),
    },
    {
      name: "delete_webhook",
      title: "Delete a webhook",
      description: "Deletes a webhook and its delivery log.",
      scopes: ["webhooks:write"],
      input: byId,
      output: deletionSchema,
      annotations: REPLACES,
      confirmation: {
        async question(caller, { id }) {
          const { url } = await webhooks.get(caller, id as string);
          return `Delete the webhook that sends events to ${url}, and its delivery log?`;
        },
        refused: notDeleted,
      },
      run: async (caller, { id }) => {
        await webhooks.remove(caller, id as string);
        return { deleted: true, id };
      },
    },
  ];
}

/** Creates the tools whose POST returns a secret. A model never sees it: its context may be logged and shared. */
function secretTools(webhooks: WebhookService, webhookPageUrl: WebhookPageUrl): Tool[] {
  const toResult: SecretTool["toResult"] = ({ secret, ...shown }, { organizationId }) => ({
    ...shown,
    secret_url: webhookPageUrl(organizationId, shown.id as string),
  });
  const shared = {
    scopes: ["webhooks:write"],
    output: sameAs("get_webhook", "The webhook", { secret_url: z.string() }),
    toResult,
  } satisfies Partial<SecretTool>;
  return [
    {
      ...shared,
      name: "create_webhook",
      title: "Create a webhook",
      description: `Creates a webhook, which sends signed events to a URL. ${SEE_SECRET}`,
      input: webhooks.schemas.create,
      annotations: CREATES,
      operation: "createWebhook",
      run: async (caller, input) => createdWebhook(await webhooks.create(caller, input)),
    },
    {
      ...shared,
      name: "rotate_webhook_secret",
      title: "Rotate a webhook's secret",
      description: `Creates a new signing secret. The previous one also signs for 24 hours. ${SEE_SECRET}`,
      input: byId,
      annotations: { ...REPLACES, idempotentHint: false },
      operation: "rotateWebhookSecret",
      run: async (caller, { id }) => webhookWithSecret(await webhooks.rotateSecret(caller, id as string)),
    },
  ];
}

type SecretTool = Extract<Tool, { operation: string }>;

function deliveryTools(webhooks: WebhookService, shortUrl: string): Tool[] {
  const view = (delivery: Delivery) => toDeliveryView(delivery, shortUrl);
  return [
    {
      name: "test_webhook",
      title: "Test a webhook",
      description: "Sends a webhook.test event. list_webhook_deliveries has the result.",
      scopes: ["webhooks:write"],
      input: byId,
      output: delivery,
      annotations: { ...CREATES, openWorldHint: true },
      operation: "testWebhook",
      run: async (caller, { id }) => queuedDelivery(await webhooks.test(caller, id as string), shortUrl),
    },
    {
      name: "list_webhook_deliveries",
      title: "List webhook deliveries",
      description: "Lists deliveries with payloads and attempts, newest first.",
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
        delivery_id: z.string().describe("The delivery ID, such as evt_01J9…."),
      }),
      output: delivery,
      annotations: { ...CREATES, openWorldHint: true },
      operation: "resendDelivery",
      run: async (caller, { id, delivery_id }) =>
        queuedDelivery(await webhooks.resend(caller, id as string, delivery_id as string), shortUrl),
    },
  ];
}
