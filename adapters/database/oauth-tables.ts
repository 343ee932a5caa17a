import type { Json, Time } from "./tables.ts";

export type ClientRow = {
  id: string;
  organization_id: string;
  redirect_uris: Json;
  generation: number;
  created_at: Time;
  updated_at: Time;
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

/** A rule on which tokens of other issuers an organization's client may authenticate with. */
export type TrustRuleRow = {
  id: string;
  organization_id: string;
  name: string;
  issuer: string;
  subject: string;
  audience: string;
  claims: Json;
  /** Separated by spaces. */
  scopes: string;
  created_by: string;
  created_at: Time;
  last_used_at: Time | null;
};

export type GrantRow = {
  id: string;
  client_id: string;
  user_id: string;
  organization_id: string | null;
  payload: Json;
  /** The id of the grant that the consent page created. Null without such a page, and in grants of earlier versions. */
  consent_id: string | null;
  consented_at: Time | null;
  created_at: Time;
  expires_at: Time;
  revoked_at: Time | null;
  last_used_at: Time | null;
};

export type TokenRow = {
  id_hash: string;
  /** The name of the oidc-provider model. */
  kind: string;
  client_id: string | null;
  grant_id: string | null;
  generation: number | null;
  payload: Json;
  expires_at: Time;
  consumed_at: Time | null;
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
};

export type InteractionRow = {
  id_hash: string;
  user_id: string | null;
  payload: Json;
  expires_at: Time;
  destroyed_at: Time | null;
};
