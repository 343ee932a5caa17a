import type { Role } from "../../resources/access/scopes.ts";
import type { EventType } from "../../resources/events/types.ts";
import type { RedirectType } from "../../resources/links/types.ts";
import type { Plan } from "../../resources/plans.ts";
import type { DeliveryStatus } from "../../resources/webhooks/types.ts";

/** Epoch milliseconds. Every engine returns a number: on PostgreSQL, `postgres.ts` parses it. */
export type Time = number;
/** A JSON document in a text column: serialized and parsed by the stores. */
export type Json = string;
/** A boolean column: PostgreSQL returns a boolean, the other engines 0 or 1. Every engine accepts a boolean. */
export type Flag = boolean | 0 | 1;

export type OrganizationRow = {
  id: string;
  name: string;
  plan: Plan;
  created_at: Time;
  updated_at: Time;
  deleted_at: Time | null;
  /** Which clients without an organization may act for this one. */
  document_clients: "known" | "any" | "none";
  require_dpop: Flag;
  enterprise_authorization: Flag;
  /** Which apps the role `member` may authorize. */
  member_apps: "any" | "approved" | "none";
  suspended_at: Time | null;
  suspended_reason: string | null;
  require_second_factor: Flag;
  fallback_url: string | null;
};

export type MembershipRow = { user_id: string; organization_id: string; role: Role; created_at: Time };

export type InvitationRow = {
  id: string;
  id_hash: string;
  organization_id: string;
  role: Role;
  created_by: string;
  created_at: Time;
  expires_at: Time;
  used_at: Time | null;
  email: string | null;
  /** For whom it is, in the words of its creator. */
  label: string | null;
};

export type EventRow = {
  id: string;
  organization_id: string;
  audited: Flag;
  type: EventType;
  actor: string;
  via: string | null;
  address: string | null;
  subject: string | null;
  data: Json;
  created_at: Time;
  expires_at: Time;
  seq: number | null;
  hash: string | null;
  traceparent: string | null;
  /** The event with all of the data, if the audit log keeps less. */
  copy_id: string | null;
};

export type WebhookRow = {
  id: string;
  organization_id: string;
  url: string;
  /** Event types, separated by spaces. */
  events: string;
  enabled: Flag;
  secret: string;
  previous_secret: string | null;
  previous_until: Time | null;
  failing_since: Time | null;
  /** Stored once a minute while deliveries succeed. */
  last_success_at: Time | null;
  paused_until: Time | null;
  disabled_reason: string | null;
  created_by: string;
  created_via: string | null;
  host: string;
  /** SHA-256 of the organization and the URL; unique. */
  url_hash: string;
  /** Since when responses take too long; null after a fast one. */
  slow_since: Time | null;
  /** Until when no request is sent after repeated failures. */
  blocked_until: Time | null;
  failures: number;
  /** The test event that verifies the endpoint, and until when other events wait for it; null if it is verified. */
  verification_event_id: string | null;
  verification_expires_at: Time | null;
  created_at: Time;
  updated_at: Time;
};

export type DeliveryRow = {
  webhook_id: string;
  event_id: string;
  status: DeliveryStatus;
  attempts: number;
  due_at: Time | null;
  leased_by: string | null;
  log: Json;
  created_at: Time;
  expires_at: Time;
  /** The type of the event; empty if a version before 0011_delivery_log added the delivery. */
  type: string;
  /** The last request and its response as JSON; encrypted. */
  exchange: string | null;
};

export type DeliveryUsageRow = {
  organization_id: string;
  /** The last day with deliveries: days since January 1, 1970, UTC. */
  day: number;
  deliveries: number;
  quota_reached_on: number | null;
};

export type IdempotencyKeyRow = {
  organization_id: string;
  key_hash: string;
  request_hash: string;
  answer: string | null;
  leased_by: string;
  leased_until: Time;
  ids_from: string;
  created_at: Time;
  expires_at: Time;
};

export type LeaseRow = { name: string; holder: string; expires_at: Time };

export type SchemaCompatibilityRow = {
  migration: string;
  /** The last migration of the oldest version that can. Null if no earlier version can. */
  oldest_compatible: string | null;
  version: string;
};

/** The head of a hash chain: its last entry, the last one that was purged, and the code that authenticates both. */
export type AuditChainRow = {
  organization_id: string;
  seq: number;
  hash: string;
  expires_at: Time;
  purged_seq: number;
  purged_hash: string;
  /** Null until there is an encryption key. */
  mac: string | null;
  /** Of the row for all logs, the sum of the codes of their heads. */
  sum: string | null;
};

export type LinkRow = {
  id: string;
  organization_id: string;
  slug: string;
  url: string;
  title: string | null;
  /** The URL, slug and title with folded case, which searches look at. */
  searched: string;
  tags: string;
  external_id: string | null;
  metadata: Json;
  archived: Flag;
  expires_at: Time | null;
  max_clicks: number | null;
  redirect_type: RedirectType;
  fallback_url: string | null;
  /** Of people; those of known bots are counted apart. */
  clicks: number;
  bot_clicks: number;
  last_clicked_at: Time | null;
  version: number;
  created_by: string;
  /** The client that acted for the user in `created_by`. Null if none did. */
  created_via: string | null;
  created_at: Time;
  updated_at: Time;
  deleted_at: Time | null;
  disabled_at: Time | null;
  disabled_reason: string | null;
};

/** On SQLite: the only row, whose version rises with each change that affects redirects. */
export type LinkChangesRow = { id: number; version: number };

export type ClickCountRow = {
  organization_id: string;
  /** Empty for the sum of all links. */
  link_id: string;
  /** The names of `clicks` and `bots` are hours, those of `agent` a device, a browser and an operating system. */
  dimension: "clicks" | "bots" | "referrer" | "country" | "agent" | "link";
  day: number;
  /** Empty if it is unknown. */
  name: string;
  clicks: number;
};
