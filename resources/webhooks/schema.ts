import { z } from "zod";
import { WEBHOOK_EVENTS } from "../events.ts";
import { type AllowedHosts, refuseWebhookUrl, URL_MAX } from "./address.ts";
import type { Message } from "./message.ts";
import type { Delivery, Webhook } from "./ports.ts";

// Each of them, and some twice; a list without an end would be looked through to its end.
const EVENTS_MAX = 100;
const EVENT_NAMES = `This must be a list of one or more of ${WEBHOOK_EVENTS.join(", ")}.`;

/** What callers send; made for the receivers that the operator vouches for. */
export function webhookSchemas(allowed: AllowedHosts) {
  const fields = {
    url: z
      .string({ error: "This must be a string." })
      .check((context) => {
        const message = refuseWebhookUrl(context.value, allowed);
        if (message) context.issues.push({ code: "custom", input: context.value, message });
      })
      .meta({ maxLength: URL_MAX })
      .describe("Where events are sent: an https URL on port 443 or 8443 of the public internet."),
    events: z
      .array(z.enum(WEBHOOK_EVENTS, { error: EVENT_NAMES }), { error: EVENT_NAMES })
      .min(1, { error: EVENT_NAMES })
      .max(EVENTS_MAX, { error: EVENT_NAMES })
      .transform((list) => [...new Set(list)])
      .describe("What to be told of."),
    enabled: z
      .boolean({ error: "This must be true or false." })
      .describe("Nothing is sent to a webhook that is not enabled."),
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

const WHOLE = { error: "This must be a whole number from 1 to 100." };

/** What a list of webhooks or of deliveries is asked for. */
export const pageQuery = z.strictObject({
  limit: z.int(WHOLE).min(1, WHOLE).max(100, WHOLE).default(25).describe("How many at most."),
  cursor: z.string().optional().describe("The next_cursor of the page before."),
});

const time = z.iso.datetime();
const nextCursor = z.string().nullable().describe("The cursor of the next page; null on the last one.");

/** A webhook, as an example. */
export const WEBHOOK_EXAMPLE = {
  id: "whk_01JAV4T9Q5YQ8Z6K3W2N7R1XCE",
  url: "https://example.com/hook",
  events: ["link.created" as const, "link.deleted" as const],
  enabled: true,
  created_at: "2026-02-28T12:00:00.000Z",
  updated_at: "2026-02-28T12:00:00.000Z",
};

/** A webhook as the API shows it. */
export const webhookSchema = z
  .object({
    id: z.string(),
    url: z.string().describe("Where events are sent."),
    events: z.array(z.enum(WEBHOOK_EVENTS)).describe("What it is told of."),
    enabled: z
      .boolean()
      .describe("false: nothing is sent. So it is too when a receiver answered 410, or nothing for days."),
    created_at: time,
    updated_at: time,
  })
  .meta({ title: "Webhook", examples: [WEBHOOK_EXAMPLE] });

/** A webhook with its secret: shown when it is made, and when the secret is replaced. */
export const webhookWithSecretSchema = webhookSchema
  .extend({ secret: z.string().describe("Proves that a delivery comes from us. It is not shown again.") })
  .meta({
    title: "WebhookWithSecret",
    examples: [{ ...WEBHOOK_EXAMPLE, secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDDMQ7eS2Hd4s=" }],
  });

/** A page of webhooks, newest first. */
export const webhookPageSchema = z
  .object({ data: z.array(webhookSchema), next_cursor: nextCursor })
  .meta({ title: "WebhookPage", examples: [{ data: [WEBHOOK_EXAMPLE], next_cursor: null }] });

/** A delivery, as an example. */
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
    data: { webhook_id: WEBHOOK_EXAMPLE.id },
  },
};

/** A delivery as the API shows it. */
export const deliverySchema = z
  .object({
    id: z.string().describe("The id of the event: the header webhook-id of every attempt."),
    type: z.enum(WEBHOOK_EVENTS),
    status: z.enum(["pending", "succeeded", "failed"]),
    attempts: z
      .array(
        z.object({
          at: time,
          status: z.int().optional().describe("What the receiver answered."),
          error: z.string().optional().describe("Why there is no answer."),
          ms: z.int(),
        }),
      )
      .describe("The oldest first."),
    next_attempt_at: time.nullable(),
    created_at: time,
    request: z
      .object({ type: z.string(), timestamp: time, data: z.record(z.string(), z.unknown()) })
      .describe("The body that is sent; data is the link, or what changed."),
  })
  .meta({ title: "Delivery", examples: [DELIVERY_EXAMPLE] });

/** A page of deliveries, newest first. */
export const deliveryPageSchema = z
  .object({ data: z.array(deliverySchema), next_cursor: nextCursor })
  .meta({ title: "DeliveryPage", examples: [{ data: [DELIVERY_EXAMPLE], next_cursor: null }] });

/** A webhook in the words of the API. */
export function toWebhookView(webhook: Webhook): z.output<typeof webhookSchema> {
  const { id, url, events, enabled, createdAt, updatedAt } = webhook;
  return { id, url, events, enabled, created_at: toTime(createdAt), updated_at: toTime(updatedAt) };
}

/** A delivery in the words of the API; `request` is the body of its event. */
export function toDeliveryView(
  { event, status, attempts, nextAttemptAt }: Delivery,
  request: Message,
): z.output<typeof deliverySchema> {
  return {
    id: event.id,
    type: event.type,
    status,
    attempts: attempts.map((attempt) => ({ ...attempt, at: toTime(attempt.at) })),
    next_attempt_at: nextAttemptAt === null ? null : toTime(nextAttemptAt),
    created_at: toTime(event.createdAt),
    request,
  };
}

function toTime(at: number): string {
  return new Date(at).toISOString();
}
