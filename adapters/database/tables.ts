import type { Role } from "../../resources/access/scopes.ts";
import type { EventType } from "../../resources/events/types.ts";
import type { RedirectType } from "../../resources/links/types.ts";
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
};

export type UserRow = {
  id: string;
  username: string;
  /** The normalized username, which is unique. */
  username_key: string;
  password_hash: string | null;
  created_at: Time;
  disabled_at: Time | null;
};

export type MembershipRow = { user_id: string; organization_id: string; role: Role; created_at: Time };

export type IdentityRow = {
  issuer: string;
  subject: string;
  user_id: string;
  label: string | null;
  created_at: Time;
};

export type InvitationRow = {
  id: string;
  id_hash: string;
  organization_id: string;
  role: Role;
  created_by: string;
  created_at: Time;
  expires_at: Time;
  used_at: Time | null;
};

export type OneTimeLinkRow = {
  id_hash: string;
  purpose: "password_reset";
  user_id: string;
  /** A user id or `operator`. Null in links of earlier versions, which can't be used. */
  created_by: string | null;
  /** The organization that an owner acted for. Null for the operator. */
  organization_id: string | null;
  created_at: Time;
  expires_at: Time;
  used_at: Time | null;
};

export type LinkRow = {
  id: string;
  organization_id: string;
  slug: string;
  url: string;
  title: string | null;
  tags: string;
  external_id: string | null;
  metadata: Json;
  archived: Flag;
  expires_at: Time | null;
  max_clicks: number | null;
  redirect_type: RedirectType;
  clicks: number;
  last_clicked_at: Time | null;
  version: number;
  created_by: string;
  created_at: Time;
  updated_at: Time;
  deleted_at: Time | null;
};

export type ClickStatRow = {
  link_id: string;
  /** Days since January 1, 1970, UTC. */
  day: number;
  referrer: string;
  country: string;
  bot: Flag;
  organization_id: string;
  clicks: number;
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
export type SealedKeyRow = { purpose: string; sealed: string; created_at: Time };
