import type { DeliveryStatus } from "../../../resources/webhooks/types.ts";
import * as t from "./columns.ts";
import { EVENT_TYPE } from "./events.ts";

const SECRET = "webhook";

export const webhooks = t.table(
  "webhooks",
  {
    id: t.id().primary(),
    organization_id: t.id().indexed(),
    url: t.text().encrypted("webhook-url"),
    /** Schedules deliveries and is shown in the audit log. */
    host: t.key(t.HOST),
    /** SHA-256 of the organization and the URL. */
    url_hash: t.hash(),
    /** Event types, separated by spaces. */
    events: t.key(255),
    enabled: t.flag(),
    secret: t.text().encrypted(SECRET),
    /** Signs as well until `previous_until`. */
    previous_secret: t.text().encrypted(SECRET).nullable(),
    previous_until: t.time().nullable(),
    failing_since: t.time().nullable(),
    /** Stored once a minute while deliveries succeed. */
    last_success_at: t.time().nullable(),
    /** As the receiver requested (Retry-After). */
    paused_until: t.time().nullable(),
    /** Since when responses take too long; null after a fast one. */
    slow_since: t.time().nullable(),
    /** Until when no request is sent after repeated failures. */
    blocked_until: t.time().nullable(),
    failures: t.integer().default(0),
    disabled_reason: t.string(255).nullable(),
    created_by: t.key(t.CLIENT_ID),
    created_via: t.key(t.CLIENT_ID).nullable(),
    /** The test event that verifies the endpoint, and until when other events wait for it; null if it is verified. */
    verification_event_id: t.id().nullable(),
    verification_expires_at: t.time().nullable(),
    created_at: t.time(),
    updated_at: t.time(),
  },
  { unique: [["organization_id", "url_hash"]] },
);
export type WebhookRow = t.RowOf<typeof webhooks>;

/** One for each event and subscribed webhook, created with the event. */
export const deliveries = t.table(
  "deliveries",
  {
    webhook_id: t.id(),
    event_id: t.id(),
    status: t.string(16).as<DeliveryStatus>(),
    attempts: t.integer().default(0),
    /** When the next attempt is due, or null if there is none. A lease postpones it. */
    due_at: t.time().nullable(),
    leased_by: t.id().nullable(),
    /** Past attempts: time, duration, status or error. */
    log: t.json(),
    created_at: t.time(),
    expires_at: t.time().indexed(),
    /** That of the event, by which deliveries are filtered. */
    type: t.key(EVENT_TYPE),
    /** The last request and its response as JSON; encrypted, but not again, because it is deleted after 30 days. */
    exchange: t.text().nullable(),
  },
  { primary: ["webhook_id", "event_id"], indexes: [["due_at", "webhook_id"]], purged: {} },
);
export type DeliveryRow = t.RowOf<typeof deliveries>;

export const deliveryUsage = t.table("delivery_usage", {
  organization_id: t.id().primary(),
  /** The last day with deliveries: days since January 1, 1970, UTC. */
  day: t.integer(),
  deliveries: t.count(),
  quota_reached_on: t.integer().nullable(),
});

export const WEBHOOK_TABLES = [webhooks, deliveries, deliveryUsage] as const;
