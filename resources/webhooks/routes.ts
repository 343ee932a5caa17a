import { z } from "zod";
import { idOf, respond } from "../http/api-context.ts";
import { matchesIfNoneMatch, preconditionOf } from "../http/etag.ts";
import { pageQuery } from "../http/pagination.ts";
import type { Declare, Operation } from "../openapi/operation.ts";
import { eventPageSchema, eventQuery, type ListEvents } from "./event-list.ts";
import {
  createdWebhook,
  DELIVERY_EXAMPLE,
  deliveryDetailsSchema,
  deliveryPageSchema,
  deliveryQuery,
  deliverySchema,
  queuedDelivery,
  resentSchema,
  toDeliveryDetailsView,
  toDeliveryView,
  toWebhookView,
  WEBHOOK_EXAMPLE,
  webhookPageSchema,
  webhookResponse,
  webhookSchema,
  webhookTag,
  webhookWithSecret,
  webhookWithSecretSchema,
} from "./schema.ts";
import type { WebhookService } from "./service.ts";

type WebhookRouteOptions = { webhooks: WebhookService; listEvents: ListEvents; shortUrl: string };

const READ = { tag: "Webhooks", scopes: ["webhooks:read"] } satisfies Partial<Operation>;
const WRITE = { tag: "Webhooks", scopes: ["webhooks:write"] } satisfies Partial<Operation>;

const webhookParams = z.object({
  id: z
    .string()
    .describe("The webhook ID.")
    .meta({ examples: [WEBHOOK_EXAMPLE.id] }),
});

const READ_ONE = { ...READ, params: webhookParams };
const WRITE_ONE = { ...WRITE, params: webhookParams };

const deliveryParams = webhookParams.extend({
  delivery_id: z
    .string()
    .describe("The delivery ID.")
    .meta({ examples: [DELIVERY_EXAMPLE.id] }),
});

export function webhookRoutes(
  declare: Declare,
  { webhooks, listEvents, shortUrl }: WebhookRouteOptions,
): void {
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
      201: {
        description: "The created webhook.",
        body: webhookWithSecretSchema,
        headers: ["Location", "ETag"],
      },
    },
    errors: ["webhook_limit", "webhook_exists", "secret_shown_once"],
    handler: async (ctx) =>
      respond(ctx, createdWebhook(await webhooks.create(ctx.state.caller, ctx.request.body))),
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
      const { webhooks: page, nextCursor } = await webhooks.list(ctx.state.caller, ctx.state.query);
      ctx.body = { data: page.map(toWebhookView), next_cursor: nextCursor };
    },
  });

  declare({
    ...READ_ONE,
    id: "getWebhook",
    method: "get",
    path: "/v1/webhooks/{id}",
    summary: "Retrieve a webhook",
    description: "Returns the webhook without its signing secret.",
    headers: ["If-None-Match"],
    responses: {
      200: { description: "The webhook.", body: webhookSchema, headers: ["ETag"] },
      304: { description: "The webhook still has the ETag that you sent.", headers: ["ETag"] },
    },
    errors: ["not_found"],
    async handler(ctx) {
      const webhook = await webhooks.get(ctx.state.caller, idOf(ctx));
      respond(ctx, webhookResponse(webhook));
      if (matchesIfNoneMatch(ctx, webhookTag(webhook))) ctx.status = 304;
    },
  });

  declare({
    ...WRITE_ONE,
    id: "updateWebhook",
    method: "patch",
    path: "/v1/webhooks/{id}",
    summary: "Update a webhook",
    description:
      "Updates the fields in the request and keeps all others. A new URL is verified with a test event, like that of a new webhook.",
    headers: ["If-Match"],
    body: webhooks.schemas.update,
    responses: { 200: { description: "The updated webhook.", body: webhookSchema, headers: ["ETag"] } },
    errors: ["not_found", "webhook_exists", "precondition_failed"],
    async handler(ctx) {
      const { body } = ctx.request;
      const webhook = await webhooks.update(ctx.state.caller, idOf(ctx), body, preconditionOf(ctx));
      respond(ctx, webhookResponse(webhook));
    },
  });

  declare({
    ...WRITE_ONE,
    id: "deleteWebhook",
    method: "delete",
    path: "/v1/webhooks/{id}",
    summary: "Delete a webhook",
    description: "Deletes the webhook and its delivery log. Pending deliveries are canceled.",
    headers: ["If-Match"],
    responses: { 204: { description: "Deleted." } },
    errors: ["not_found", "precondition_failed"],
    async handler(ctx) {
      await webhooks.remove(ctx.state.caller, idOf(ctx), preconditionOf(ctx));
      ctx.status = 204;
    },
  });

  declare({
    ...WRITE_ONE,
    id: "rotateWebhookSecret",
    method: "post",
    path: "/v1/webhooks/{id}/rotate-secret",
    summary: "Rotate the signing secret",
    description: "For 24 hours, requests are signed with both the new and the previous secret.",
    responses: { 200: { description: "The webhook with its new secret.", body: webhookWithSecretSchema } },
    errors: ["not_found", "secret_shown_once"],
    handler: async (ctx) =>
      respond(ctx, webhookWithSecret(await webhooks.rotateSecret(ctx.state.caller, idOf(ctx)))),
  });

  declare({
    ...WRITE_ONE,
    id: "testWebhook",
    method: "post",
    path: "/v1/webhooks/{id}/test",
    summary: "Send a test event",
    description:
      "Sends `webhook.test` to this webhook only, even if it doesn't subscribe to that event. A webhook that isn't verified yet is verified when its endpoint accepts the event.",
    responses: { 202: { description: "The queued delivery.", body: deliverySchema } },
    errors: ["not_found", "webhook_disabled"],
    handler: async (ctx) =>
      respond(ctx, queuedDelivery(await webhooks.test(ctx.state.caller, idOf(ctx)), shortUrl)),
  });

  declare({
    ...READ_ONE,
    id: "listDeliveries",
    method: "get",
    path: "/v1/webhooks/{id}/deliveries",
    summary: "List deliveries",
    description: "Returns the deliveries of the last 30 days with all their attempts, newest first.",
    query: deliveryQuery,
    responses: { 200: { description: "A page of deliveries.", body: deliveryPageSchema } },
    errors: ["not_found"],
    async handler(ctx) {
      const { deliveries, nextCursor } = await webhooks.deliveries(
        ctx.state.caller,
        idOf(ctx),
        ctx.state.query,
      );
      ctx.body = { data: deliveries.map((one) => toDeliveryView(one, shortUrl)), next_cursor: nextCursor };
    },
  });

  declare({
    ...READ,
    id: "getDelivery",
    method: "get",
    path: "/v1/webhooks/{id}/deliveries/{delivery_id}",
    summary: "Retrieve a delivery",
    description: "Returns a delivery with the headers of its last request, and the start of the response.",
    params: deliveryParams,
    responses: { 200: { description: "The delivery.", body: deliveryDetailsSchema } },
    errors: ["not_found"],
    async handler(ctx) {
      const { id, delivery_id } = ctx.params as { id: string; delivery_id: string };
      ctx.body = toDeliveryDetailsView(await webhooks.delivery(ctx.state.caller, id, delivery_id), shortUrl);
    },
  });

  declare({
    ...WRITE_ONE,
    id: "resendFailedDeliveries",
    method: "post",
    path: "/v1/webhooks/{id}/deliveries/resend-failed",
    summary: "Resend failed deliveries",
    description:
      "Immediately queues all deliveries that have failed, up to 10,000 per request, with the same bodies and IDs. Pending deliveries keep their retry schedule. Each resent delivery counts toward the daily quota.",
    responses: { 202: { description: "How many deliveries were queued.", body: resentSchema } },
    errors: ["not_found", "webhook_disabled", "webhook_unverified"],
    handler: async (ctx) =>
      respond(ctx, { status: 202, body: await webhooks.resendFailed(ctx.state.caller, idOf(ctx)) }),
  });

  declare({
    ...WRITE,
    id: "resendDelivery",
    method: "post",
    path: "/v1/webhooks/{id}/deliveries/{delivery_id}/resend",
    summary: "Resend a delivery",
    description:
      "Immediately sends the same body with the same ID. Failed attempts follow the usual retry schedule.",
    params: deliveryParams,
    responses: { 202: { description: "The queued delivery.", body: deliverySchema } },
    errors: ["not_found", "webhook_disabled", "webhook_unverified"],
    async handler(ctx) {
      const { id, delivery_id } = ctx.params as { id: string; delivery_id: string };
      respond(ctx, queuedDelivery(await webhooks.resend(ctx.state.caller, id, delivery_id), shortUrl));
    },
  });

  declare({
    tag: "Webhooks",
    scopes: ["links:read", "webhooks:read"],
    id: "listEvents",
    method: "get",
    path: "/v1/events",
    summary: "List events",
    description:
      "Returns the events of the last 30 days, oldest first, with the data that webhooks get. On the last page, `next_cursor` is null. To get the events that happen later, send the request again with `resume_cursor` as `cursor`. Every event is returned once, usually within two seconds. Clicks aren't listed.",
    query: eventQuery,
    responses: { 200: { description: "A page of events.", body: eventPageSchema } },
    async handler(ctx) {
      ctx.body = await listEvents(ctx.state.caller, ctx.state.query);
    },
  });
}
