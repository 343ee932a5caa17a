import * as t from "./columns.ts";

const MIGRATION = 255; // Knex's length of a migration's name

/** Which earlier versions can use the schema that a migration results in. */
export const schemaCompatibility = t.table("schema_compatibility", {
  migration: t.key(MIGRATION).primary(),
  /** The last migration of the oldest version that can. Null if no earlier version can. */
  oldest_compatible: t.key(MIGRATION).nullable(),
  version: t.string(64),
});

export const leases = t.table("leases", { name: t.key(32).primary(), holder: t.id(), expires_at: t.time() });

export const sealedKeys = t.table("sealed_keys", {
  purpose: t.key(32).primary(),
  sealed: t.text().encrypted("key"),
  created_at: t.time(),
  /** Incremented by each rotation. */
  version: t.integer().default(1),
});

export const idempotencyKeys = t.table(
  "idempotency_keys",
  {
    organization_id: t.id(),
    key_hash: t.hash(),
    request_hash: t.hash(),
    /** The response to replay. Null until there is one. */
    answer: t.longText().encrypted("idempotency").nullable(),
    /** The current or last attempt. After `leased_until` it is presumed dead. */
    leased_by: t.id(),
    leased_until: t.time(),
    /** The seed of the ids of links that the request creates: the same in each attempt. */
    ids_from: t.id(),
    created_at: t.time(),
    expires_at: t.time().indexed(),
  },
  { primary: ["organization_id", "key_hash"], purged: {} },
);

export const SERVICE_TABLES = [schemaCompatibility, leases, sealedKeys, idempotencyKeys] as const;
