import * as t from "./columns.ts";

export const clients = t.table("clients", {
  id: t.id().primary(),
  /** At most one client per organization, also under concurrent upgrades. */
  organization_id: t.id().unique().references("organizations.id"),
  redirect_uris: t.json(),
  /** Incremented to revoke all tokens of the client together. */
  generation: t.integer().default(0),
  created_at: t.time(),
  updated_at: t.time(),
  disabled_at: t.time().nullable(),
  /** A user id or `operator`. Only the operator enables a client that the operator disabled. */
  disabled_by: t.key(t.CLIENT_ID).nullable(),
  disabled_reason: t.string(255).nullable(),
  /** Whether the client follows the FAPI 2.0 Security Profile. */
  fapi: t.flag().default(false),
});
export type ClientRow = t.RowOf<typeof clients>;

/** How an organization presents its client to users. */
export const clientProfiles = t.table("client_profiles", {
  client_id: t.id().primary().deletedWith("clients.id"),
  name: t.string(100).nullable(),
  homepage: t.text().nullable(),
});

export const clientSecrets = t.table(
  "client_secrets",
  {
    id: t.id().primary(),
    client_id: t.id().indexed().deletedWith("clients.id"),
    hash: t.hash().indexed(),
    last4: t.key(4),
    created_at: t.time(),
    expires_at: t.time().nullable(),
    last_used_at: t.time().nullable(),
  },
  { purged: {} },
);

export const clientSecretUses = t.table(
  "client_secret_uses",
  {
    secret_id: t.id(),
    /** The name of the program, as it claims. */
    program: t.string(40),
    /** The network, such as 203.0.113.0/24. */
    network: t.string(64),
    last_used_at: t.time(),
    expires_at: t.time().indexed(),
  },
  { primary: ["secret_id", "program", "network"], purged: {} },
);

/** Public keys that clients authenticate with (RFC 7523). */
export const clientKeys = t.table(
  "client_keys",
  {
    id: t.id().primary(),
    client_id: t.key(t.CLIENT_ID),
    /** The thumbprint of the key (RFC 7638), which is its `kid` unless the JWK names another one. */
    thumbprint: t.hash(),
    jwk: t.json(),
    created_by: t.key(t.CLIENT_ID),
    created_at: t.time(),
    last_used_at: t.time().nullable(),
  },
  { unique: [["client_id", "thumbprint"]] },
);

export const grants = t.table(
  "grants",
  {
    id: t.hash().primary(),
    client_id: t.key(t.CLIENT_ID).indexed(),
    user_id: t.id().indexed(),
    organization_id: t.id().indexed().nullable(),
    payload: t.json(),
    created_at: t.time(),
    expires_at: t.time().indexed(),
    revoked_at: t.time().nullable(),
    last_used_at: t.time().nullable(),
    /** The id of the grant that the consent page created. Null without such a page. */
    consent_id: t.hash().nullable(),
    consented_at: t.time().nullable(),
  },
  { purged: {} },
);
export type GrantRow = t.RowOf<typeof grants>;

// SQLite keeps the rowid although the hash is the primary key: a random key causes no page splits of the rows.
export const tokens = t.table(
  "tokens",
  {
    /** See `tokenKey`. */
    id_hash: t.hash().primary(),
    kind: t.string(32),
    client_id: t.key(t.CLIENT_ID).nullable(),
    grant_id: t.hash().nullable(),
    generation: t.integer().nullable(),
    payload: t.json(),
    expires_at: t.time().indexed(),
    consumed_at: t.time().nullable(),
    /** How often a rotated refresh token was used again within the time for retries. */
    retries: t.smallint().default(0),
  },
  { purged: {} },
);
export type TokenRow = t.RowOf<typeof tokens>;

export const sessions = t.table(
  "sessions",
  {
    id_hash: t.hash().primary(),
    uid: t.hash().unique().nullable(),
    user_id: t.id().indexed().nullable(),
    payload: t.json(),
    created_at: t.time(),
    expires_at: t.time().indexed(),
    destroyed_at: t.time().nullable(),
    last_seen_at: t.time().nullable(),
    address: t.key(t.ADDRESS).nullable(),
    user_agent: t.string(255).nullable(),
    /** The passkey or, hashed, the SSO identity that started the session. */
    credential: t.hash().nullable(),
  },
  { purged: {} },
);
export type SessionRow = t.RowOf<typeof sessions>;

export const interactions = t.table(
  "interactions",
  {
    id_hash: t.hash().primary(),
    payload: t.json(),
    expires_at: t.time().indexed(),
    destroyed_at: t.time().nullable(),
    user_id: t.id().indexed().nullable(),
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
