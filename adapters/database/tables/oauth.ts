import {
  ADDRESS,
  CLIENT_ID,
  flag,
  hash,
  id,
  integer,
  json,
  key,
  type RowOf,
  smallint,
  string,
  table,
  text,
  time,
} from "./columns.ts";

export const clients = table("clients", {
  id: id().primary(),
  /** At most one client per organization, also under concurrent upgrades. */
  organization_id: id().unique().references("organizations.id"),
  redirect_uris: json(),
  /** Incremented to revoke all tokens of the client together. */
  generation: integer().default(0),
  created_at: time(),
  updated_at: time(),
  disabled_at: time().nullable(),
  /** A user id or `operator`. Only the operator enables a client that the operator disabled. */
  disabled_by: key(CLIENT_ID).nullable(),
  disabled_reason: string(255).nullable(),
  /** Whether the client follows the FAPI 2.0 Security Profile. */
  fapi: flag().default(false),
});
export type ClientRow = RowOf<typeof clients>;

/** How an organization presents its client to users. */
export const clientProfiles = table("client_profiles", {
  client_id: id().primary().deletedWith("clients.id"),
  name: string(100).nullable(),
  homepage: text().nullable(),
});

export const clientSecrets = table(
  "client_secrets",
  {
    id: id().primary(),
    client_id: id().indexed().deletedWith("clients.id"),
    hash: hash().indexed(),
    last4: key(4),
    created_at: time(),
    expires_at: time().nullable(),
    last_used_at: time().nullable(),
  },
  { purged: {} },
);

export const clientSecretUses = table(
  "client_secret_uses",
  {
    secret_id: id(),
    /** The name of the program, as it claims. */
    program: string(40),
    /** The network, such as 203.0.113.0/24. */
    network: string(64),
    last_used_at: time(),
    expires_at: time().indexed(),
  },
  { primary: ["secret_id", "program", "network"], purged: {} },
);

/** Public keys that clients authenticate with (RFC 7523). */
export const clientKeys = table(
  "client_keys",
  {
    id: id().primary(),
    client_id: key(CLIENT_ID),
    /** The thumbprint of the key (RFC 7638), which is its `kid` unless the JWK names another one. */
    thumbprint: hash(),
    jwk: json(),
    created_by: key(CLIENT_ID),
    created_at: time(),
    last_used_at: time().nullable(),
  },
  { unique: [["client_id", "thumbprint"]] },
);

export const grants = table(
  "grants",
  {
    id: hash().primary(),
    client_id: key(CLIENT_ID).indexed(),
    user_id: id().indexed(),
    organization_id: id().indexed().nullable(),
    payload: json(),
    created_at: time(),
    expires_at: time().indexed(),
    revoked_at: time().nullable(),
    last_used_at: time().nullable(),
    /** The id of the grant that the consent page created. Null without such a page. */
    consent_id: hash().nullable(),
    consented_at: time().nullable(),
  },
  { purged: {} },
);
export type GrantRow = RowOf<typeof grants>;

// SQLite keeps the rowid although the hash is the primary key: a random key causes no page splits of the rows.
export const tokens = table(
  "tokens",
  {
    /** See `tokenKey`. */
    id_hash: hash().primary(),
    kind: string(32),
    client_id: key(CLIENT_ID).nullable(),
    grant_id: hash().nullable(),
    generation: integer().nullable(),
    payload: json(),
    expires_at: time().indexed(),
    consumed_at: time().nullable(),
    /** How often a rotated refresh token was used again within the time for retries. */
    retries: smallint().default(0),
  },
  { purged: {} },
);
export type TokenRow = RowOf<typeof tokens>;

export const sessions = table(
  "sessions",
  {
    id_hash: hash().primary(),
    uid: hash().unique().nullable(),
    user_id: id().indexed().nullable(),
    payload: json(),
    created_at: time(),
    expires_at: time().indexed(),
    destroyed_at: time().nullable(),
    last_seen_at: time().nullable(),
    address: key(ADDRESS).nullable(),
    user_agent: string(255).nullable(),
    /** The passkey or, hashed, the SSO identity that started the session. */
    credential: hash().nullable(),
  },
  { purged: {} },
);
export type SessionRow = RowOf<typeof sessions>;

export const interactions = table(
  "interactions",
  {
    id_hash: hash().primary(),
    payload: json(),
    expires_at: time().indexed(),
    destroyed_at: time().nullable(),
    user_id: id().indexed().nullable(),
  },
  { purged: {} },
);

export const OAUTH_TABLES = [
  clients,
  clientProfiles,
  clientSecrets,
  clientSecretUses,
  clientKeys,
  grants,
  tokens,
  sessions,
  interactions,
] as const;
