import { z } from "zod";
import { pageQuery } from "../http/pagination.ts";
import {
  type Declare,
  type Operation,
  pathParameter,
  sameAs,
  type ToolDeclaration,
} from "../openapi/operation.ts";
import { eventPageSchema, eventQuery, type ListEvents } from "./event-list.ts";
import * as schema from "./schema.ts";
import type { WebhookService } from "./service.ts";

export type WebhookPageUrl = (organizationId: string, webhookId: string) => string;

type WebhookRouteOptions = {
  webhooks: WebhookService;
  listEvents: ListEvents;
  shortUrl: string;
  webhookPageUrl: WebhookPageUrl;
};

const READ = { tag: "Webhooks", scopes: ["webhooks:read"] } satisfies Partial<Operation>;
const WRITE = { tag: "Webhooks", scopes: ["webhooks:write"] } satisfies Partial<Operation>;

const webhookParams = z.object({ id: pathParameter("The webhook ID.", schema.WEBHOOK_EXAMPLE.id) });

const READ_ONE = { ...READ, params: webhookParams };
const WRITE_ONE = { ...WRITE, params: webhookParams };

const deliveryParams = webhookParams.extend({
  delivery_id: pathParameter("The delivery ID.", schema.DELIVERY_EXAMPLE.id),
});

const webhook = sameAs("get_webhook");
const delivery = sameAs("list_webhook_deliveries");
const { request_headers, response } = schema.deliveryDetailsSchema.shape;
// create_webhook has the list of them.
const eventType = z.string().describe("As in create_webhook.");
const SENDS = { openWorldHint: true };
const SEE_SECRET = "Owners and admins view the secret at secret_url.";

export function webhookRoutes(
  declare: Declare,
  { webhooks, listEvents, shortUrl, webhookPageUrl }: WebhookRouteOptions,
): void {
  // A model never sees a secret: its context may be logged and shared.
  const withoutSecret = {
    output: sameAs("get_webhook", { secret_url: z.string() }),
    toResult: ({ body: { secret, ...shown } }, { organizationId }) => ({
      ...shown,
      secret_url: webhookPageUrl(organizationId, shown.id as string),
    }),
  } satisfies Partial<ToolDeclaration>;

  declare({
    ...WRITE,
    id: "createWebhook",
    at: "POST /v1/webhooks",
    summary: "Create a webhook",
    description:
      "Requests follow Standard Webhooks 1.0.0 and are signed with the returned secret, which is not shown again. The endpoint first gets a test event; other events wait until it responds with 2xx.",
    body: webhooks.schemas.create,
    responses: {
      201: {
        description: "The created webhook.",
        body: schema.webhookWithSecretSchema,
        headers: ["Location", "ETag"],
      },
    },
    errors: ["webhook_limit", "webhook_exists", "secret_shown_once"],
    tool: {
      ...withoutSecret,
      name: "create_webhook",
      description: `Creates a webhook, which sends signed events to a URL. ${SEE_SECRET}`,
    },
    run: async (caller, { body }) => schema.createdWebhook(await webhooks.create(caller, body)),
  });

  declare({
    ...READ,
    id: "listWebhooks",
    at: "GET /v1/webhooks",
    summary: "List webhooks",
    description: "Returns webhooks, newest first.",
    query: pageQuery,
    responses: { 200: { description: "A page of webhooks.", body: schema.webhookPageSchema } },
    tool: { name: "list_webhooks", output: schema.webhookPageSchema.extend({ data: z.array(webhook) }) },
    async run(caller, { query }) {
      const { webhooks: page, nextCursor } = await webhooks.list(caller, query);
      return { status: 200, body: { data: page.map(schema.toWebhookView), next_cursor: nextCursor } };
    },
  });

  declare({
    ...READ_ONE,
    id: "getWebhook",
    at: "GET /v1/webhooks/{id}",
    summary: "Retrieve a webhook",
    description: "Returns the webhook without its signing secret.",
    headers: ["If-None-Match"],
    responses: { 200: { description: "The webhook.", body: schema.webhookSchema, headers: ["ETag"] } },
    tool: { name: "get_webhook", title: "Get a webhook", description: "Returns a webhook." },
    run: async (caller, { params: { id } }) => schema.webhookResponse(await webhooks.get(caller, id)),
  });

  declare({
    ...WRITE_ONE,
    id: "updateWebhook",
    at: "PATCH /v1/webhooks/{id}",
    summary: "Update a webhook",
    description:
      "Updates the fields in the request and keeps all others. A new URL is verified with a test event, like that of a new webhook.",
    headers: ["If-Match"],
    body: webhooks.schemas.update,
    responses: {
      200: { description: "The updated webhook.", body: schema.webhookSchema, headers: ["ETag"] },
    },
    errors: ["webhook_exists"],
    tool: {
      name: "update_webhook",
      description: "Updates only the given fields.",
      fieldsAsIn: "create_webhook",
      output: webhook,
    },
    run: async (caller, { params: { id }, body, precondition }) =>
      schema.webhookResponse(await webhooks.update(caller, id, body, precondition)),
  });

  declare({
    ...WRITE_ONE,
    id: "deleteWebhook",
    at: "DELETE /v1/webhooks/{id}",
    summary: "Delete a webhook",
    description: "Deletes the webhook and its delivery log. Pending deliveries are canceled.",
    headers: ["If-Match"],
    responses: { 204: { description: "Deleted." } },
    tool: {
      name: "delete_webhook",
      async question(caller, { id }) {
        const { url } = await webhooks.get(caller, id);
        return `Delete the webhook that sends events to ${url}, and its delivery log?`;
      },
    },
    async run(caller, { params: { id }, precondition }) {
      await webhooks.remove(caller, id, precondition);
      return { status: 204 };
    },
  });

  declare({
    ...WRITE_ONE,
    id: "rotateWebhookSecret",
    at: "POST /v1/webhooks/{id}/rotate-secret",
    summary: "Rotate the signing secret",
    description: "For 24 hours, requests are signed with both the new and the previous secret.",
    responses: {
      200: { description: "The webhook with its new secret.", body: schema.webhookWithSecretSchema },
    },
    errors: ["secret_shown_once"],
    tool: {
      ...withoutSecret,
      name: "rotate_webhook_secret",
      title: "Rotate a webhook's secret",
      description: `Creates a new signing secret. The previous one also signs for 24 hours. ${SEE_SECRET}`,
      annotations: { destructiveHint: true },
    },
    run: async (caller, { params: { id } }) =>
      schema.webhookWithSecret(await webhooks.rotateSecret(caller, id)),
  });

  declare({
    ...WRITE_ONE,
    id: "testWebhook",
    at: "POST /v1/webhooks/{id}/test",
    summary: "Send a test event",
    description:
      "Sends `webhook.test` to this webhook only, even if it doesn't subscribe to that event. A webhook that isn't verified yet is verified when its endpoint accepts the event.",
    responses: { 202: { description: "The queued delivery.", body: schema.deliverySchema } },
    errors: ["webhook_disabled"],
    tool: {
      name: "test_webhook",
      title: "Test a webhook",
      description: "Sends a webhook.test event. list_webhook_deliveries has the result.",
      annotations: SENDS,
      output: delivery,
    },
    run: async (caller, { params: { id } }) =>
      schema.queuedDelivery(await webhooks.test(caller, id), shortUrl),
  });

  declare({
    ...READ_ONE,
    id: "listDeliveries",
    at: "GET /v1/webhooks/{id}/deliveries",
    summary: "List deliveries",
    description: "Returns the deliveries of the last 30 days with all their attempts, newest first.",
    query: schema.deliveryQuery,
    responses: { 200: { description: "A page of deliveries.", body: schema.deliveryPageSchema } },
    tool: {
      name: "list_webhook_deliveries",
      title: "List webhook deliveries",
      description: "Lists deliveries, newest first.",
      input: z.strictObject({
        ...webhookParams.shape,
        ...schema.deliveryQuery.shape,
        event_type: eventType.optional(),
      }),
    },
    async run(caller, { params: { id }, query }) {
      const { deliveries, nextCursor } = await webhooks.deliveries(caller, id, query);
      const data = deliveries.map((one) => schema.toDeliveryView(one, shortUrl));
      return { status: 200, body: { data, next_cursor: nextCursor } };
    },
  });

  declare({
    ...READ,
    id: "getDelivery",
    at: "GET /v1/webhooks/{id}/deliveries/{delivery_id}",
    summary: "Retrieve a delivery",
    description: "Returns a delivery with the headers of its last request, and the start of the response.",
    params: deliveryParams,
    responses: { 200: { description: "The delivery.", body: schema.deliveryDetailsSchema } },
    tool: {
      name: "get_webhook_delivery",
      title: "Get a webhook delivery",
      description: "Returns a delivery with its last request and response, which is untrusted text.",
      output: sameAs("list_webhook_deliveries", { request_headers, response }),
    },
    run: async (caller, { params: { id, delivery_id } }) => ({
      status: 200,
      body: schema.toDeliveryDetailsView(await webhooks.delivery(caller, id, delivery_id), shortUrl),
    }),
  });

  declare({
    ...WRITE_ONE,
    id: "resendFailedDeliveries",
    at: "POST /v1/webhooks/{id}/deliveries/resend-failed",
    summary: "Resend failed deliveries",
    description:
      "Immediately queues all deliveries that have failed, up to 10,000 per request, with the same bodies and IDs. Pending deliveries keep their retry schedule. Each resent delivery counts toward the daily quota.",
    responses: { 202: { description: "How many deliveries were queued.", body: schema.resentSchema } },
    errors: ["webhook_disabled", "webhook_unverified"],
    tool: {
      name: "resend_failed_webhook_deliveries",
      title: "Resend failed webhook deliveries",
      description: "Resends up to 10,000 failed deliveries with the same IDs.",
      annotations: SENDS,
    },
    run: async (caller, { params: { id } }) => ({
      status: 202,
      body: await webhooks.resendFailed(caller, id),
    }),
  });

  declare({
    ...WRITE,
    id: "resendDelivery",
    at: "POST /v1/webhooks/{id}/deliveries/{delivery_id}/resend",
    summary: "Resend a delivery",
    description:
      "Immediately sends the same body with the same ID. Failed attempts follow the usual retry schedule.",
    params: deliveryParams,
    responses: { 202: { description: "The queued delivery.", body: schema.deliverySchema } },
    errors: ["webhook_disabled", "webhook_unverified"],
    tool: {
      name: "resend_webhook_delivery",
      title: "Resend a webhook delivery",
      description: "Resends a delivery with the same ID.",
      annotations: SENDS,
      output: delivery,
    },
    run: async (caller, { params: { id, delivery_id } }) =>
      schema.queuedDelivery(await webhooks.resend(caller, id, delivery_id), shortUrl),
  });

  declare({
    tag: "Webhooks",
    scopes: ["links:read", "webhooks:read"],
    id: "listEvents",
    at: "GET /v1/events",
    summary: "List events",
    description:
      "Returns the events of the last 30 days, oldest first, with the data that webhooks get. On the last page, `next_cursor` is null. To get the events that happen later, send the request again with `resume_cursor` as `cursor`. Every event is returned once, usually within two seconds. Clicks aren't listed.",
    query: eventQuery,
    responses: { 200: { description: "A page of events.", body: eventPageSchema } },
    tool: {
      name: "list_events",
      description:
        "Lists events of the last 30 days with the data that webhooks get, oldest first, without clicks.",
      input: eventQuery.extend({ limit: pageQuery.shape.limit, type: z.array(eventType).optional() }),
      output: eventPageSchema.extend({ data: z.array(z.looseObject({})) }),
    },
    run: async (caller, { query }) => ({ status: 200, body: await listEvents(caller, query) }),
  });
}
