import { hash, id, integer, key, longText, string, table, text, time } from "./columns.ts";

const MIGRATION = 255; // Knex's length of a migration's name

/** Which earlier versions can use the schema that a migration results in. */
export const schemaCompatibility = table("schema_compatibility", {
  migration: key(MIGRATION).primary(),
  /** The last migration of the oldest version that can. Null if no earlier version can. */
  oldest_compatible: key(MIGRATION).nullable(),
  version: string(64),
});

export const leases = table("leases", {
  name: key(32).primary(),
  holder: id(),
  expires_at: time(),
});

export const sealedKeys = table("sealed_keys", {
  purpose: key(32).primary(),
  sealed: text().encrypted("key"),
  created_at: time(),
  /** Incremented by each rotation. */
  version: integer().default(1),
});

export const idempotencyKeys = table(
  "idempotency_keys",
  {
    organization_id: id(),
    key_hash: hash(),
    request_hash: hash(),
    /** The response to replay. Null until there is one. */
    answer: longText().encrypted("idempotency").nullable(),
    /** The current or last attempt. After `leased_until` it is presumed dead. */
    leased_by: id(),
    leased_until: time(),
    /** The seed of the ids of links that the request creates: the same in each attempt. */
    ids_from: id(),
    created_at: time(),
    expires_at: time().indexed(),
  },
  { primary: ["organization_id", "key_hash"], purged: {} },
);

export const SERVICE_TABLES = [schemaCompatibility, leases, sealedKeys, idempotencyKeys] as const;
