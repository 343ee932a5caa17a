import type { DeliveryStatus } from "../../../resources/webhooks/types.ts";
import {
  CLIENT_ID,
  count,
  flag,
  HOST,
  hash,
  id,
  integer,
  json,
  key,
  type RowOf,
  string,
  table,
  text,
  time,
} from "./columns.ts";
import { EVENT_TYPE } from "./events.ts";

const SECRET = "webhook";

export const webhooks = table(
  "webhooks",
  {
    id: id().primary(),
    organization_id: id().indexed(),
    url: text().encrypted("webhook-url"),
    /** Schedules deliveries and is shown in the audit log. */
    host: key(HOST),
    /** SHA-256 of the organization and the URL. */
    url_hash: hash(),
    /** Event types, separated by spaces. */
    events: key(255),
    enabled: flag(),
    secret: text().encrypted(SECRET),
    /** Signs as well until `previous_until`. */
    previous_secret: text().encrypted(SECRET).nullable(),
    previous_until: time().nullable(),
    failing_since: time().nullable(),
    /** Stored once a minute while deliveries succeed. */
    last_success_at: time().nullable(),
    /** As the receiver requested (Retry-After). */
    paused_until: time().nullable(),
    /** Since when responses take too long; null after a fast one. */
    slow_since: time().nullable(),
    /** Until when no request is sent after repeated failures. */
    blocked_until: time().nullable(),
    failures: integer().default(0),
    disabled_reason: string(255).nullable(),
    created_by: key(CLIENT_ID),
    created_via: key(CLIENT_ID).nullable(),
    /** The test event that verifies the endpoint, and until when other events wait for it; null if it is verified. */
    verification_event_id: id().nullable(),
    verification_expires_at: time().nullable(),
    created_at: time(),
    updated_at: time(),
  },
  { unique: [["organization_id", "url_hash"]] },
);
export type WebhookRow = RowOf<typeof webhooks>;

/** One for each event and subscribed webhook, created with the event. */
export const deliveries = table(
  "deliveries",
  {
    webhook_id: id(),
    event_id: id(),
    status: string(16).as<DeliveryStatus>(),
    attempts: integer().default(0),
    /** When the next attempt is due, or null if there is none. A lease postpones it. */
    due_at: time().nullable(),
    leased_by: id().nullable(),
    /** Past attempts: time, duration, status or error. */
    log: json(),
    created_at: time(),
    expires_at: time().indexed(),
    /** That of the event, by which deliveries are filtered. */
    type: key(EVENT_TYPE),
    /** The last request and its response as JSON; encrypted, but not again, because it is deleted after 30 days. */
    exchange: text().nullable(),
  },
  {
    primary: ["webhook_id", "event_id"],
    indexes: [["due_at", "webhook_id"]],
    purged: {},
  },
);
export type DeliveryRow = RowOf<typeof deliveries>;

export const deliveryUsage = table("delivery_usage", {
  organization_id: id().primary(),
  /** The last day with deliveries: days since January 1, 1970, UTC. */
  day: integer(),
  deliveries: count(),
  quota_reached_on: integer().nullable(),
});

export const WEBHOOK_TABLES = [webhooks, deliveries, deliveryUsage] as const;
