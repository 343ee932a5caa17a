import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { withChecksum } from "../crypto/checksum.ts";
import { sha256 } from "../crypto/hash.ts";
import { newId, newSecret } from "../crypto/ids.ts";
import type { Outbox } from "../events/outbox.ts";
import { lockClient } from "./client-lock.ts";
import { revokeGrants } from "./grants.ts";

/** A client with a new secret. Only a hash of the secret is stored, so this is the only time it is known. */
export type NewClient = { clientId: string; clientSecret: string };

/** The result of a rotation. `previousExpiresAt` is when the previous secret expires; null if there was none. */
export type Rotation = NewClient & { previousExpiresAt: number | null };

/** @see ClientStore */
export async function rotateSecret(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  organizationId: string,
  { overlapMs, compromised }: { overlapMs: number; compromised: boolean },
): Promise<Rotation | undefined> {
  const id = await lockClient(trx, organizationId);
  if (!id) return undefined;
  const now = Date.now();
  if (compromised) await trx("clients").where({ id }).increment("generation");
  const expiresAt = compromised ? now : now + overlapMs;
  const hasPrevious = await expireSecrets(trx, id, now, expiresAt);
  const previousExpiresAt = hasPrevious ? expiresAt : null;
  if (compromised) await revokeGrants(trx, outbox, actor, { client_id: id });
  const clientSecret = await addSecret(trx, id);
  await outbox.record(trx, actor, {
    organizationId,
    type: "client.secret_rotated",
    subject: id,
    data: {
      client_id: id,
      compromised,
      previous_expires_at: previousExpiresAt === null ? null : new Date(previousExpiresAt).toISOString(),
    },
  });
  return { clientId: id, clientSecret, previousExpiresAt };
}

/** @see ClientStore */
export async function revokeSecret(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  organizationId: string,
  secretId: string,
): Promise<"missing" | "newest" | undefined> {
  const clientId = await lockClient(trx, organizationId);
  if (!clientId) return "missing";
  const now = Date.now();
  const secret = trx("client_secrets").where({ id: secretId, client_id: clientId });
  const found = await secret.clone().first("expires_at");
  if (!found || (found.expires_at !== null && found.expires_at <= now)) return "missing";
  if (found.expires_at === null) return "newest";
  await secret.update({ expires_at: now });
  await outbox.record(trx, actor, {
    organizationId,
    type: "client.secret_ended",
    subject: clientId,
    data: { client_id: clientId, secret_id: secretId },
  });
  return undefined;
}

/** @see ClientStore */
export async function removeSecrets(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  organizationId: string,
): Promise<boolean> {
  const clientId = await lockClient(trx, organizationId);
  if (!clientId) return false;
  const removed = await deleteSecrets(trx, clientId);
  if (removed === 0) return true;
  await outbox.record(trx, actor, {
    organizationId,
    type: "client.secrets_removed",
    subject: clientId,
    data: { client_id: clientId },
  });
  return true;
}

/** Deletes all secrets of a client, and who used them; returns their number. Part of the caller's transaction. */
export async function deleteSecrets(trx: Knex, clientId: string): Promise<number> {
  const ids = await trx("client_secrets").where({ client_id: clientId }).pluck("id");
  await trx("client_secret_uses").whereIn("secret_id", ids).delete();
  return trx("client_secrets").whereIn("id", ids).delete();
}

/** Adds a secret, which is returned and not stored. Part of the caller's transaction. */
export async function addSecret(trx: Knex, clientId: string): Promise<string> {
  const secret = withChecksum(newSecret("lgs_"));
  await trx("client_secrets").insert({
    id: newId("sec"),
    client_id: clientId,
    hash: sha256(secret),
    last4: secret.slice(-4),
    created_at: Date.now(),
  });
  return secret;
}

/**
 * Lets the newest secret expire at `previousExpiresAt`. Secrets that were already expiring expire now. Returns whether
 * there was a newest one.
 */
async function expireSecrets(
  trx: Knex,
  clientId: string,
  now: number,
  previousExpiresAt: number,
): Promise<boolean> {
  const secrets = () => trx("client_secrets").where({ client_id: clientId });
  await secrets().where("expires_at", ">", now).update({ expires_at: now });
  return (await secrets().whereNull("expires_at").update({ expires_at: previousExpiresAt })) > 0;
}
