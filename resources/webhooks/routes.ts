import { respond } from "../http/response.ts";
import type { Declare } from "../openapi/operation.ts";
import { declareDeliveryRoutes } from "./delivery-routes.ts";
import { createdWebhook, webhookWithSecret } from "./responses.ts";
import { callerOf, idOf, READ, type WebhookRouteOptions, WRITE, webhookParams } from "./route-options.ts";
import {
  pageQuery,
  toWebhookView,
  webhookPageSchema,
  webhookSchema,
  webhookWithSecretSchema,
} from "./schema.ts";

/** Declares the REST operations of webhooks and their deliveries. */
export function webhookRoutes(declare: Declare, options: WebhookRouteOptions): void {
  declareCollectionRoutes(declare, options);
  declareItemRoutes(declare, options);
  declareDeliveryRoutes(declare, options);
}

function declareCollectionRoutes(declare: Declare, { webhooks }: WebhookRouteOptions): void {
  declare({
    ...WRITE,
    id: "createWebhook",
    method: "post",
    path: "/v1/webhooks",
    summary: "Create a webhook",
    description:
      "Requests follow Standard Webhooks 1.0.0 and are signed with the returned secret, which is not shown again. The endpoint first gets a test event; other events wait until it responds with 2xx.",
    body: webhooks.schemas.create,
    responses: {
      201: { description: "The created webhook.", body: webhookWithSecretSchema, headers: ["Location"] },
    },
    errors: ["webhook_limit", "webhook_exists"],
    async handler(ctx) {
      respond(ctx, createdWebhook(await webhooks.create(callerOf(ctx), ctx.request.body)));
    },
  });

  declare({
    ...READ,
    id: "listWebhooks",
    method: "get",
    path: "/v1/webhooks",
    summary: "List webhooks",
    description: "Returns webhooks, newest first.",
    query: pageQuery,
    responses: { 200: { description: "A page of webhooks.", body: webhookPageSchema } },
    async handler(ctx) {
      const { webhooks: page, nextCursor } = await webhooks.list(callerOf(ctx), ctx.state.query);
      ctx.body = { data: page.map(toWebhookView), next_cursor: nextCursor };
    },
  });
}

function declareItemRoutes(declare: Declare, { webhooks }: WebhookRouteOptions): void {
  declare({
    ...READ,
    id: "getWebhook",
    method: "get",
    path: "/v1/webhooks/{id}",
    summary: "Retrieve a webhook",
    params: webhookParams,
    responses: { 200: { description: "The webhook.", body: webhookSchema } },
    errors: ["not_found"],
    async handler(ctx) {
      ctx.body = toWebhookView(await webhooks.get(callerOf(ctx), idOf(ctx)));
    },
  });

  declare({
    ...WRITE,
    id: "updateWebhook",
    method: "patch",
    path: "/v1/webhooks/{id}",
    summary: "Update a webhook",
    description:
      "Updates the fields in the request and keeps all others. A new URL is verified with a test event, like that of a new webhook.",
    params: webhookParams,
    body: webhooks.schemas.update,
    responses: { 200: { description: "The updated webhook.", body: webhookSchema } },
    errors: ["not_found", "webhook_exists"],
    async handler(ctx) {
      ctx.body = toWebhookView(await webhooks.update(callerOf(ctx), idOf(ctx), ctx.request.body));
    },
  });

  declare({
    ...WRITE,
    id: "deleteWebhook",
    method: "delete",
    path: "/v1/webhooks/{id}",
    summary: "Delete a webhook",
    description: "Deletes the webhook and its delivery log. Pending deliveries are canceled.",
    params: webhookParams,
    responses: { 204: { description: "Deleted." } },
    errors: ["not_found"],
    async handler(ctx) {
      await webhooks.remove(callerOf(ctx), idOf(ctx));
      ctx.status = 204;
    },
  });

  declare({
    ...WRITE,
    id: "rotateWebhookSecret",
    method: "post",
    path: "/v1/webhooks/{id}/rotate-secret",
    summary: "Rotate the signing secret",
    description: "For 24 hours, requests are signed with both the new and the previous secret.",
    params: webhookParams,
    responses: { 200: { description: "The webhook with its new secret.", body: webhookWithSecretSchema } },
    errors: ["not_found"],
    async handler(ctx) {
      respond(ctx, webhookWithSecret(await webhooks.rotateSecret(callerOf(ctx), idOf(ctx))));
    },
  });
}
