import type { Role } from "../../resources/access/scopes.ts";
import type { EventType } from "../../resources/events/types.ts";
import type { Plan } from "../../resources/plans.ts";
import type { DeliveryStatus } from "../../resources/webhooks/types.ts";

/** Epoch milliseconds. Every engine returns a number (see `numbersForBigints` in engine.ts). */
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
  /** Whether owners and admins must use a second factor. */
  require_second_factor: Flag;
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
  /** The email address that the invitation was sent to. */
  email: string | null;
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
  paused_until: Time | null;
  disabled_reason: string | null;
  created_by: string;
  created_via: string | null;
  /** The hostname of the URL. */
  host: string;
  /** SHA-256 of the organization and the URL; unique. */
  url_hash: string;
  /** Since when responses take too long; null after a fast one. */
  slow_since: Time | null;
  /** Until when no request is sent after repeated failures. */
  blocked_until: Time | null;
  /** The number of failed attempts since the last success. */
  failures: number;
  /** The test event that verifies the endpoint; null if none is being sent. */
  verification_event_id: string | null;
  /** Until when other events wait for the verification; null if the endpoint is verified. */
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
};

export type DeliveryUsageRow = {
  organization_id: string;
  /** The last day with deliveries: days since January 1, 1970, UTC. */
  day: number;
  /** The number of deliveries on that day. */
  deliveries: number;
  /** The last day on which the quota was reached. */
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

/** Which versions can use the schema that a migration left. */
export type SchemaCompatibilityRow = {
  migration: string;
  /** The last migration of the oldest version that can. Null if no earlier version can. */
  oldest_compatible: string | null;
  /** The version of linkgate that applied the migration. */
  version: string;
};
