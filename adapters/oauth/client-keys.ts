import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { newId } from "../crypto/ids.ts";
import type { Outbox } from "../events/outbox.ts";
import { lockClient } from "./client-lock.ts";
import { revokeGrants } from "./grants.ts";

/** A public key of a client, without the key itself. Times are epoch milliseconds. */
export type KeyView = {
  id: string;
  /** The thumbprint of the key (RFC 7638). */
  thumbprint: string;
  createdAt: number;
  lastUsedAt: number | null;
};

/** A public key that a client authenticates with (RFC 7523), as a JWK (RFC 7517). */
export type ClientKey = KeyView & { jwk: Record<string, unknown> };

// One in use, and the next one during a rotation.
const MAX_KEYS = 2;

/** Lists the keys of a client, newest first. */
export async function listKeys(knex: Knex, clientId: string): Promise<ClientKey[]> {
  const rows = await knex("client_keys").where({ client_id: clientId }).orderBy("id", "desc");
  return rows.map(({ id, thumbprint, jwk, created_at: createdAt, last_used_at: lastUsedAt }) => ({
    id,
    thumbprint,
    jwk: JSON.parse(jwk),
    createdAt,
    lastUsedAt,
  }));
}

/** @see ClientStore */
export async function addKey(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  organizationId: string,
  { jwk, thumbprint }: Pick<ClientKey, "jwk" | "thumbprint">,
): Promise<KeyView | "missing" | "duplicate" | "limit"> {
  const clientId = await lockClient(trx, organizationId);
  if (!clientId) return "missing";
  const keys = await listKeys(trx, clientId);
  if (keys.some((key) => key.thumbprint === thumbprint)) return "duplicate";
  if (keys.length >= MAX_KEYS) return "limit";
  const id = newId("key");
  const createdAt = Date.now();
  await trx("client_keys").insert({
    id,
    client_id: clientId,
    thumbprint,
    jwk: JSON.stringify(jwk),
    created_by: actor.id,
    created_at: createdAt,
  });
  await outbox.record(trx, actor, {
    organizationId,
    type: "client.key_added",
    subject: clientId,
    data: { client_id: clientId, key_id: id, thumbprint },
  });
  return { id, thumbprint, createdAt, lastUsedAt: null };
}

/** @see ClientStore */
export async function removeKey(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  { organizationId, keyId, compromised }: { organizationId: string; keyId: string; compromised: boolean },
): Promise<boolean> {
  const clientId = await lockClient(trx, organizationId);
  if (!clientId) return false;
  const key = () => trx("client_keys").where({ id: keyId, client_id: clientId });
  const removed = await key().first("thumbprint");
  if (!removed) return false;
  await key().delete();
  if (compromised) {
    await trx("clients").where({ id: clientId }).increment("generation");
    await revokeGrants(trx, outbox, actor, { client_id: clientId });
  }
  await outbox.record(trx, actor, {
    organizationId,
    type: "client.key_removed",
    subject: clientId,
    data: { client_id: clientId, key_id: keyId, thumbprint: removed.thumbprint, compromised },
  });
  return true;
}
