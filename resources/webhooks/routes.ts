import type { Context } from "koa";
import { z } from "zod";
import { give } from "../answer.ts";
import type { Caller } from "../bearer.ts";
import type { Declare, Operation } from "../openapi/operation.ts";
import { madeWebhook, startedDelivery, webhookWithSecret } from "./answers.ts";
import { toMessage } from "./message.ts";
import type { Delivery } from "./ports.ts";
import {
  DELIVERY_EXAMPLE,
  deliveryPageSchema,
  deliverySchema,
  pageQuery,
  toDeliveryView,
  toWebhookView,
  WEBHOOK_EXAMPLE,
  webhookPageSchema,
  webhookSchema,
  webhookWithSecretSchema,
} from "./schema.ts";
import type { Webhooks } from "./webhooks.ts";

type RestOptions = { webhooks: Webhooks; shortUrl: string };

const byId = z.object({
  id: z
    .string()
    .describe("The id of the webhook.")
    .meta({ examples: [WEBHOOK_EXAMPLE.id] }),
});
const byDelivery = byId.extend({
  delivery_id: z
    .string()
    .describe("The id of the delivery.")
    .meta({ examples: [DELIVERY_EXAMPLE.id] }),
});

/** The REST face of webhooks: declares its operations. */
export function webhookRoutes(declare: Declare, { webhooks, shortUrl }: RestOptions): void {
  const view = (delivery: Delivery) => toDeliveryView(delivery, toMessage(delivery.event, shortUrl));
  const reads = { tag: "Webhooks", scopes: ["webhooks:read"] } satisfies Partial<Operation>;
  const writes = { tag: "Webhooks", scopes: ["webhooks:write"] } satisfies Partial<Operation>;

  declare({
    ...writes,
    id: "createWebhook",
    method: "post",
    path: "/v1/webhooks",
    summary: "Create a webhook",
    description:
      "Events are sent as Standard Webhooks 1.0.0 says, and signed with the secret that is shown this once.",
    body: webhooks.schemas.create,
    answers: {
      201: { description: "The webhook.", body: webhookWithSecretSchema, headers: ["Location"] },
    },
    refusals: ["webhook_limit"],
    async handler(ctx) {
      give(ctx, madeWebhook(await webhooks.create(callerOf(ctx), ctx.request.body)));
    },
  });

  declare({
    ...reads,
    id: "listWebhooks",
    method: "get",
    path: "/v1/webhooks",
    summary: "List webhooks",
    description: "Newest first.",
    query: pageQuery,
    answers: { 200: { description: "A page of webhooks.", body: webhookPageSchema } },
    async handler(ctx) {
      const { webhooks: page, nextCursor } = await webhooks.list(callerOf(ctx), ctx.state.query);
      ctx.body = { data: page.map(toWebhookView), next_cursor: nextCursor };
    },
  });

  declare({
    ...reads,
    id: "getWebhook",
    method: "get",
    path: "/v1/webhooks/{id}",
    summary: "Show a webhook",
    params: byId,
    answers: { 200: { description: "The webhook.", body: webhookSchema } },
    refusals: ["not_found"],
    async handler(ctx) {
      ctx.body = toWebhookView(await webhooks.get(callerOf(ctx), idOf(ctx)));
    },
  });

  declare({
    ...writes,
    id: "updateWebhook",
    method: "patch",
    path: "/v1/webhooks/{id}",
    summary: "Change a webhook",
    description: "Changes the fields that are sent and leaves the others.",
    params: byId,
    body: webhooks.schemas.update,
    answers: { 200: { description: "The webhook as it is now.", body: webhookSchema } },
    refusals: ["not_found"],
    async handler(ctx) {
      ctx.body = toWebhookView(await webhooks.update(callerOf(ctx), idOf(ctx), ctx.request.body));
    },
  });

  declare({
    ...writes,
    id: "deleteWebhook",
    method: "delete",
    path: "/v1/webhooks/{id}",
    summary: "Delete a webhook",
    description: "With its log: nothing more is sent.",
    params: byId,
    answers: { 204: { description: "It is deleted." } },
    refusals: ["not_found"],
    async handler(ctx) {
      await webhooks.remove(callerOf(ctx), idOf(ctx));
      ctx.status = 204;
    },
  });

  declare({
    ...writes,
    id: "rotateWebhookSecret",
    method: "post",
    path: "/v1/webhooks/{id}/rotate-secret",
    summary: "Replace the secret",
    description: "For 24 hours every delivery carries a signature of the new secret and one of the old.",
    params: byId,
    answers: { 200: { description: "The webhook with its new secret.", body: webhookWithSecretSchema } },
    refusals: ["not_found"],
    async handler(ctx) {
      give(ctx, webhookWithSecret(await webhooks.rotateSecret(callerOf(ctx), idOf(ctx))));
    },
  });

  declare({
    ...writes,
    id: "testWebhook",
    method: "post",
    path: "/v1/webhooks/{id}/test",
    summary: "Send a test event",
    description: "Sends webhook.test to this webhook alone, whether or not it asked for it.",
    params: byId,
    answers: { 202: { description: "The delivery, which is under way.", body: deliverySchema } },
    refusals: ["not_found", "webhook_disabled"],
    async handler(ctx) {
      give(ctx, startedDelivery(await webhooks.test(callerOf(ctx), idOf(ctx)), shortUrl));
    },
  });

  declare({
    ...reads,
    id: "listDeliveries",
    method: "get",
    path: "/v1/webhooks/{id}/deliveries",
    summary: "List deliveries",
    description: "What the webhook was told in the last 30 days, newest first, with every attempt.",
    params: byId,
    query: pageQuery,
    answers: { 200: { description: "A page of deliveries.", body: deliveryPageSchema } },
    refusals: ["not_found"],
    async handler(ctx) {
      const found = await webhooks.deliveries(callerOf(ctx), idOf(ctx), ctx.state.query);
      ctx.body = { data: found.deliveries.map(view), next_cursor: found.nextCursor };
    },
  });

  declare({
    ...writes,
    id: "resendDelivery",
    method: "post",
    path: "/v1/webhooks/{id}/deliveries/{delivery_id}/resend",
    summary: "Send a delivery again",
    description: "The same id and body, at once; what fails is tried again as at first.",
    params: byDelivery,
    answers: { 202: { description: "The delivery, which is under way.", body: deliverySchema } },
    refusals: ["not_found", "webhook_disabled"],
    async handler(ctx) {
      const { id, delivery_id } = ctx.params as { id: string; delivery_id: string };
      give(ctx, startedDelivery(await webhooks.resend(callerOf(ctx), id, delivery_id), shortUrl));
    },
  });
}

function callerOf(ctx: Context): Caller {
  return ctx.state.caller;
}

function idOf(ctx: Context): string {
  return ctx.params.id as string;
}
