import { z } from "zod";
import { WEBHOOK_EVENTS } from "../events/delivered-events.ts";
import { type EventData, toPublicData } from "../events/public-data.ts";
import { contentTag } from "../http/etag.ts";
import { pageOf, pageQuery } from "../http/pagination.ts";
import { hasAtMost, isUnbroken } from "../http/text.ts";
import { toJson, toTimestamp } from "../http/to-json.ts";
import { stringThat } from "../http/validate.ts";
import { type AllowedHosts, isAllowedHost, mayBePublic } from "../outbound/ssrf-guard.ts";
import type { DeliveredEvent, Delivery, DeliveryDetails, Webhook, WebhookWithSecret } from "./types.ts";

export const URL_MAX = 2048;
const PORTS = new Set(["", "443", "8443"]);

/** Returns why a URL is invalid; undefined if it is valid. Hostnames are resolved when a request is sent. */
export function validateWebhookUrl(text: string, allowed: AllowedHosts): string | undefined {
  if (!hasAtMost(URL_MAX, text)) return `must be at most ${URL_MAX.toLocaleString("en")} characters`;
  if (!isUnbroken(text) || text.includes("\\"))
    return "must not contain spaces, control characters or backslashes";
  const url = URL.parse(text);
  if (!url || !/^https?:\/\/[^/]/i.test(text))
    return "must be an absolute URL, for example https://example.com/hook";
  if (url.username || url.password) return "must not contain a username or password";
  if (url.hash || text.includes("#")) return "must not contain a fragment";
  if (isAllowedHost(url, allowed)) return undefined;
  const hint = `; to use a local endpoint, start the server with WEBHOOK_ALLOW_HOSTS=${url.host}`;
  if (url.protocol !== "https:") return `must be an https URL${hint}`;
  if (!PORTS.has(url.port)) return "must use port 443 or 8443";
  return mayBePublic(url.hostname) ? undefined : `must be on the public internet${hint}`;
}

// Enough for every event type and some duplicates. The limit bounds the work of deduplicating.
const EVENTS_MAX = 100;
const EVENT_LIST = `must be a list of one or more of ${WEBHOOK_EVENTS.join(", ")}`;

/** Creates the schemas of the create and update requests. URLs of `allowed` hosts may be private or use http. */
export function webhookSchemas(allowed: AllowedHosts) {
  const fields = {
    url: stringThat((text) => validateWebhookUrl(text, allowed), {
      format: "uri",
      maxLength: URL_MAX,
    }).describe("A public https URL on port 443 or 8443."),
    events: z
      .array(z.enum(WEBHOOK_EVENTS), { error: EVENT_LIST })
      .min(1, { error: EVENT_LIST })
      .max(EVENTS_MAX, { error: `must contain at most ${EVENTS_MAX} events` })
      .transform((list) => [...new Set(list)])
      .describe("The events to send."),
    enabled: z.boolean().describe("Whether to send events."),
  };
  return {
    create: z.strictObject({ ...fields, enabled: fields.enabled.default(true) }).meta({
      title: "NewWebhook",
      examples: [{ url: WEBHOOK_EXAMPLE.url, events: WEBHOOK_EXAMPLE.events }],
    }),
    update: z
      .strictObject(fields)
      .partial()
      .meta({ title: "WebhookChanges", examples: [{ enabled: true }] }),
  };
}

const time = z.iso.datetime();

export const WEBHOOK_EXAMPLE = {
  id: "whk_01JAV4T9Q5YQ8Z6K3W2N7R1XCE",
  url: "https://example.com/hook",
  events: ["link.created" as const, "link.deleted" as const],
  enabled: true,
  verified: true,
  created_at: "2026-02-28T12:00:00.000Z",
  updated_at: "2026-02-28T12:00:00.000Z",
  created_by: "usr_01JAV4Q7M2X9C5B8N3K6T0R1WF",
  created_via: "lgc_Zr3vYb0aQn5fTtK1",
};

export const webhookSchema = z
  .object({
    id: z.string(),
    url: z.string().describe("The endpoint URL."),
    events: z.array(z.enum(WEBHOOK_EVENTS)).describe("The events that are sent."),
    enabled: z
      .boolean()
      .describe("Whether events are sent. Set to false if the endpoint responds with 410 or fails for days."),
    verified: z
      .boolean()
      .describe("Whether the endpoint has accepted a test event. Until then, other events wait."),
    created_at: time,
    updated_at: time,
    created_by: z
      .string()
      .nullable()
      .describe("The ID of the client or user that created the webhook, if known."),
    created_via: z.string().nullable().describe("The client ID of the app that the user used, if any."),
  })
  .meta({ title: "Webhook", examples: [WEBHOOK_EXAMPLE] });

/** A webhook with its signing secret, returned only at creation and after a rotation. */
export const webhookWithSecretSchema = webhookSchema
  .extend({ secret: z.string().describe("The signing secret. Returned only once.") })
  .meta({
    title: "WebhookWithSecret",
    examples: [
      { ...WEBHOOK_EXAMPLE, verified: false, secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDDMQ7eS2Hd4s=" },
    ],
  });

export const webhookPageSchema = pageOf(webhookSchema, "WebhookPage", WEBHOOK_EXAMPLE);

export const DELIVERY_EXAMPLE = {
  id: "evt_01JAV5H3C8M1V7T0S9E4X2Q6ZD",
  type: "webhook.test" as const,
  status: "succeeded" as const,
  attempts: [{ at: "2026-03-01T09:30:00.120Z", status: 204, ms: 87 }],
  next_attempt_at: null,
  created_at: "2026-03-01T09:30:00.000Z",
  request: {
    type: "webhook.test",
    timestamp: "2026-03-01T09:30:00.000Z",
    data: { webhook_id: WEBHOOK_EXAMPLE.id, verification: false },
  },
};

const DELIVERY_STATUSES = ["pending", "succeeded", "failed"] as const;

export const deliveryQuery = pageQuery.extend({
  status: z
    .enum(DELIVERY_STATUSES)
    .optional()
    .describe("Only deliveries with this status. Retries are pending."),
  event_type: z.enum(WEBHOOK_EVENTS).optional().describe("Only deliveries of events of this type."),
});

export const deliverySchema = z
  .object({
    id: z.string().describe("The event ID, sent as the `webhook-id` header of every attempt."),
    type: z.enum(WEBHOOK_EVENTS),
    status: z.enum(DELIVERY_STATUSES),
    attempts: z
      .array(
        z.object({
          at: time,
          status: z.int().optional().describe("The HTTP status of the response."),
          error: z.string().optional().describe("Why there was no response."),
          ms: z.int().describe("The duration in milliseconds."),
        }),
      )
      .describe("All attempts, oldest first."),
    next_attempt_at: time
      .nullable()
      .describe("Null if no further attempt is scheduled, or while the webhook isn't verified."),
    created_at: time,
    request: z
      .object({ type: z.string(), timestamp: time, data: z.record(z.string(), z.unknown()) })
      .describe("The request body."),
  })
  .meta({ title: "Delivery", examples: [DELIVERY_EXAMPLE] });

export const deliveryPageSchema = pageOf(deliverySchema, "DeliveryPage", DELIVERY_EXAMPLE);

const RESPONSE_EXAMPLE = {
  status: 204,
  headers: { date: "Sun, 01 Mar 2026 09:30:00 GMT" },
  body: "",
  truncated: false,
};
const DETAILS_EXAMPLE = {
  ...DELIVERY_EXAMPLE,
  request_headers: {
    "webhook-id": DELIVERY_EXAMPLE.id,
    "webhook-timestamp": "1772357400",
    "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    "content-type": "application/json",
    "content-length": "133",
    "user-agent": "linkgate/0.4.0",
  },
  response: RESPONSE_EXAMPLE,
};

/** A delivery with its last request and response, which are too long for a list. */
export const deliveryDetailsSchema = deliverySchema
  .extend({
    request_headers: z
      .record(z.string(), z.string())
      .nullable()
      .describe("Those of the last request, or null."),
    response: z
      .object({
        status: z.int().describe("The HTTP status."),
        headers: z
          .record(z.string(), z.string())
          .describe("Up to 4,096 characters, without the values of cookies."),
        body: z
          .string()
          .describe("The first 4 KB as UTF-8. Invalid bytes and control characters are replaced by U+FFFD."),
        truncated: z.boolean().describe("Whether the body is longer or didn't end in time."),
      })
      .nullable()
      .describe("The response to the last request, or null."),
  })
  .meta({ title: "DeliveryDetails", examples: [DETAILS_EXAMPLE] });

export const resentSchema = z
  .object({
    resent: z.int().describe("How many deliveries were queued."),
    has_more: z.boolean().describe("Whether more deliveries have failed: then send the request again."),
  })
  .meta({ title: "ResentDeliveries", examples: [{ resent: 12, has_more: false }] });

/** Returns the body (Standard Webhooks 1.0.0, "Payload structure"): the event's data, or its link. */
export function toPayload(event: DeliveredEvent, shortUrl: string) {
  const data = toPublicData(event, shortUrl);
  return {
    type: event.type,
    timestamp: toTimestamp(event.createdAt),
    data: "link" in data ? (data.link as EventData) : data,
  };
}

export function toWebhookView(webhook: Webhook): z.output<typeof webhookSchema> {
  return toJson(webhookSchema, webhook);
}

export function toDeliveryView(
  { event, status, attempts, nextAttemptAt }: Delivery,
  shortUrl: string,
): z.output<typeof deliverySchema> {
  return {
    id: event.id,
    type: event.type,
    status,
    attempts: attempts.map((attempt) => ({ ...attempt, at: toTimestamp(attempt.at) })),
    next_attempt_at: toTimestamp(nextAttemptAt),
    created_at: toTimestamp(event.createdAt),
    request: toPayload(event, shortUrl),
  };
}

export function toDeliveryDetailsView(
  delivery: DeliveryDetails,
  shortUrl: string,
): z.output<typeof deliveryDetailsSchema> {
  const { exchange } = delivery;
  return {
    ...toDeliveryView(delivery, shortUrl),
    request_headers: exchange?.requestHeaders ?? null,
    response: exchange?.response ?? null,
  };
}

/** Returns the entity tag of a webhook. What the service finds out about the endpoint, such as `verified`, is not in it. */
export function webhookTag({ url, events, enabled, updatedAt }: Webhook): string {
  return contentTag(JSON.stringify([url, events, enabled, updatedAt]));
}

export function webhookResponse(webhook: Webhook) {
  return { status: 200, headers: { ETag: webhookTag(webhook) }, body: toWebhookView(webhook) };
}

export function createdWebhook(created: WebhookWithSecret) {
  const { headers, body } = webhookWithSecret(created);
  const { id } = created.webhook;
  const ETag = webhookTag(created.webhook);
  return { status: 201, headers: { ...headers, Location: `/v1/webhooks/${id}`, ETag }, body };
}

export function webhookWithSecret({ webhook, secret }: WebhookWithSecret) {
  return {
    status: 200,
    headers: { "Cache-Control": "no-store" },
    body: { ...toWebhookView(webhook), secret },
  };
}

export function queuedDelivery(delivery: Delivery, shortUrl: string) {
  return { status: 202, body: toDeliveryView(delivery, shortUrl) };
}
