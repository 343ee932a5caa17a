import type { Flag, Json, Time } from "./tables.ts";

export type ClientRow = {
  id: string;
  organization_id: string;
  redirect_uris: Json;
  generation: number;
  created_at: Time;
  updated_at: Time;
  disabled_at: Time | null;
  /** A user id or `operator`. */
  disabled_by: string | null;
  disabled_reason: string | null;
  /** Whether the client follows the FAPI 2.0 Security Profile. */
  fapi: Flag;
};

/** How an organization presents its client to users. */
export type ClientProfileRow = {
  client_id: string;
  name: string | null;
  homepage: string | null;
};

export type ClientSecretRow = {
  id: string;
  client_id: string;
  hash: string;
  last4: string;
  created_at: Time;
  expires_at: Time | null;
  last_used_at: Time | null;
};

/** A public key that a client authenticates with (RFC 7523). */
export type ClientKeyRow = {
  id: string;
  client_id: string;
  thumbprint: string;
  jwk: Json;
  created_by: string;
  created_at: Time;
  last_used_at: Time | null;
};

export type TrustRuleRow = {
  id: string;
  organization_id: string;
  name: string;
  issuer: string;
  subject: string;
  audience: string;
  claims: Json;
  scopes: string;
  created_by: string;
  created_at: Time;
  last_used_at: Time | null;
};

export type ApprovedAppRow = {
  id: string;
  organization_id: string;
  client_id: string;
  /** A user id or `operator`. */
  approved_by: string;
  created_at: Time;
};

export type GrantRow = {
  id: string;
  client_id: string;
  user_id: string;
  organization_id: string | null;
  payload: Json;
  /** The id of the grant that the consent page created. Null without such a page. */
  consent_id: string | null;
  consented_at: Time | null;
  created_at: Time;
  expires_at: Time;
  revoked_at: Time | null;
  last_used_at: Time | null;
};

export type TokenRow = {
  /** See `tokenKey`. */
  id_hash: string;
  kind: string;
  client_id: string | null;
  grant_id: string | null;
  generation: number | null;
  payload: Json;
  expires_at: Time;
  consumed_at: Time | null;
  /** How often a rotated refresh token was used again within the time for retries. */
  retries: number;
};

export type SessionRow = {
  id_hash: string;
  uid: string | null;
  user_id: string | null;
  payload: Json;
  created_at: Time;
  expires_at: Time;
  destroyed_at: Time | null;
  last_seen_at: Time | null;
  address: string | null;
  user_agent: string | null;
  /** The passkey or, hashed, the SSO identity that started the session. */
  credential: string | null;
};

export type InteractionRow = {
  id_hash: string;
  user_id: string | null;
  payload: Json;
  expires_at: Time;
  destroyed_at: Time | null;
};

export type ClientSecretUseRow = {
  secret_id: string;
  /** The name of the program, as it claims. */
  program: string;
  /** The network, such as 203.0.113.0/24. */
  network: string;
  last_used_at: Time;
  expires_at: Time;
};
