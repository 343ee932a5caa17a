import { z } from "zod";
import { WEBHOOK_EVENTS } from "../events/types.ts";
import type { AllowedHosts } from "../outbound/ssrf-guard.ts";
import { URL_MAX, validateWebhookUrl } from "./url.ts";

// Enough for every event type and some duplicates. The limit bounds the work of deduplicating.
const EVENTS_MAX = 100;
const EVENT_NAMES = `must be one of ${WEBHOOK_EVENTS.join(", ")}`;
const EVENT_LIST = `must be a list of one or more of ${WEBHOOK_EVENTS.join(", ")}`;

/** Creates the schemas of the create and update requests. URLs of `allowed` hosts may be private or use http. */
export function webhookSchemas(allowed: AllowedHosts) {
  const fields = {
    url: z
      .string({ error: "must be a string" })
      .check((context) => {
        const message = validateWebhookUrl(context.value, allowed);
        if (message) context.issues.push({ code: "custom", input: context.value, message });
      })
      .meta({ maxLength: URL_MAX })
      .describe("A public https URL on port 443 or 8443."),
    events: z
      .array(z.enum(WEBHOOK_EVENTS, { error: EVENT_NAMES }), { error: EVENT_LIST })
      .min(1, { error: EVENT_LIST })
      .max(EVENTS_MAX, { error: `must contain at most ${EVENTS_MAX} events` })
      .transform((list) => [...new Set(list)])
      .describe("The events to send."),
    enabled: z.boolean({ error: "must be true or false" }).describe("Whether to send events."),
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

const LIMIT_RANGE = { error: "must be a whole number from 1 to 100" };

/** The query of lists of webhooks and deliveries. */
export const pageQuery = z.strictObject({
  limit: z
    .int(LIMIT_RANGE)
    .min(1, LIMIT_RANGE)
    .max(100, LIMIT_RANGE)
    .default(25)
    .describe("The maximum number of results."),
  cursor: z.string().optional().describe("The `next_cursor` of the previous page."),
});

const time = z.iso.datetime();
const nextCursor = z.string().nullable().describe("The cursor of the next page; null on the last page.");

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

/** A webhook in API responses. */
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

/** A page of webhooks, newest first. */
export const webhookPageSchema = z
  .object({ data: z.array(webhookSchema), next_cursor: nextCursor })
  .meta({ title: "WebhookPage", examples: [{ data: [WEBHOOK_EXAMPLE], next_cursor: null }] });

/** The delivery of a test event. */
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

/** A delivery in API responses. */
export const deliverySchema = z
  .object({
    id: z.string().describe("The event ID, sent as the `webhook-id` header of every attempt."),
    type: z.enum(WEBHOOK_EVENTS),
    status: z.enum(["pending", "succeeded", "failed"]),
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

/** A page of deliveries, newest first. */
export const deliveryPageSchema = z
  .object({ data: z.array(deliverySchema), next_cursor: nextCursor })
  .meta({ title: "DeliveryPage", examples: [{ data: [DELIVERY_EXAMPLE], next_cursor: null }] });
