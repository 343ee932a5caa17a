import { z } from "zod";
import { respond } from "../http/response.ts";
import type { Declare } from "../openapi/operation.ts";
import { toPayload } from "./payload.ts";
import { queuedDelivery } from "./responses.ts";
import { callerOf, idOf, READ, type WebhookRouteOptions, WRITE, webhookParams } from "./route-options.ts";
import { DELIVERY_EXAMPLE, deliveryPageSchema, deliverySchema, pageQuery, toDeliveryView } from "./schema.ts";
import type { Delivery } from "./types.ts";

const deliveryParams = webhookParams.extend({
  delivery_id: z
    .string()
    .describe("The delivery ID.")
    .meta({ examples: [DELIVERY_EXAMPLE.id] }),
});

/** Declares the REST operations of deliveries: test, list and resend. */
export function declareDeliveryRoutes(declare: Declare, { webhooks, shortUrl }: WebhookRouteOptions): void {
  const toView = (delivery: Delivery) => toDeliveryView(delivery, toPayload(delivery.event, shortUrl));

  declare({
    ...WRITE,
    id: "testWebhook",
    method: "post",
    path: "/v1/webhooks/{id}/test",
    summary: "Send a test event",
    description:
      "Sends `webhook.test` to this webhook only, even if it doesn't subscribe to that event. A webhook that isn't verified yet is verified when its endpoint accepts the event.",
    params: webhookParams,
    responses: { 202: { description: "The queued delivery.", body: deliverySchema } },
    errors: ["not_found", "webhook_disabled"],
    async handler(ctx) {
      respond(ctx, queuedDelivery(await webhooks.test(callerOf(ctx), idOf(ctx)), shortUrl));
    },
  });

  declare({
    ...READ,
    id: "listDeliveries",
    method: "get",
    path: "/v1/webhooks/{id}/deliveries",
    summary: "List deliveries",
    description: "Returns the deliveries of the last 30 days with all their attempts, newest first.",
    params: webhookParams,
    query: pageQuery,
    responses: { 200: { description: "A page of deliveries.", body: deliveryPageSchema } },
    errors: ["not_found"],
    async handler(ctx) {
      const { deliveries, nextCursor } = await webhooks.deliveries(callerOf(ctx), idOf(ctx), ctx.state.query);
      ctx.body = { data: deliveries.map(toView), next_cursor: nextCursor };
    },
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
      respond(ctx, queuedDelivery(await webhooks.resend(callerOf(ctx), id, delivery_id), shortUrl));
    },
  });
}
