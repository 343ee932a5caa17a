import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { camelKeys } from "../../resources/http/text.ts";
import { newId, newSecret, sha256, withChecksum } from "../crypto/ids.ts";
import type { BeforeCommit, Database } from "../database/index.ts";
import { type ChangeClient, forbidWithFapi } from "./change-client.ts";

/** A client with a new secret. Only a hash of the secret is stored, so this is the only time it is known. */
export type NewClient = { clientId: string; clientSecret: string };

/** The result of a rotation. `previousExpiresAt` is when the previous secret expires; null if there was none. */
export type Rotation = NewClient & { previousExpiresAt: number | null };

/** A program on a network that used a client secret. `lastUsedAt` is epoch milliseconds. */
export type SecretCaller = { program: string; network: string; lastUsedAt: number };

const CALLER_MS = 30 * 24 * 60 * 60 * 1000;
// A secret that leaks can be used from anywhere. The most recent callers are kept.
const MAX_CALLERS = 20;

export function createClientSecretStore({ knex }: Database, changeClient: ChangeClient) {
  return {
    /** Lists the unexpired secrets of a client, newest first, and who used each in the last 30 days. */
    async listSecrets(clientId: string) {
      const secrets = await knex("client_secrets")
        .where({ client_id: clientId })
        .where(unexpired)
        .orderBy("id", "desc")
        .select("id", "last4", "created_at", "expires_at", "last_used_at");
      const ids = secrets.map(({ id }) => id);
      const uses = await knex("client_secret_uses")
        .whereIn("secret_id", ids)
        .where("expires_at", ">", Date.now())
        .orderBy("last_used_at", "desc")
        .select("secret_id", "program", "network", "last_used_at");
      const callers = Map.groupBy(uses, ({ secret_id }) => secret_id);
      return secrets.map((secret) => ({
        ...camelKeys(secret),
        callers: (callers.get(secret.id) ?? []).map(
          ({ secret_id: _, ...use }): SecretCaller => camelKeys(use),
        ),
      }));
    },

    /**
     * The previous secret stays valid for `overlapMs`. `compromised` revokes it now, with all tokens and grants.
     * Throws FapiConflict.
     */
    rotateSecret: (
      organizationId: string,
      { overlapMs, compromised }: { overlapMs: number; compromised: boolean },
      actor: Actor,
      beforeCommit?: BeforeCommit<Rotation>,
    ): Promise<Rotation | undefined> =>
      changeClient(organizationId, actor, undefined, async (client) => {
        const { trx, id } = client;
        forbidWithFapi(client, "new_secret");
        const now = Date.now();
        const expiresAt = compromised ? now : now + overlapMs;
        const secrets = () => trx("client_secrets").where({ client_id: id });
        await secrets().where("expires_at", ">", now).update({ expires_at: now });
        const hasPrevious = (await secrets().whereNull("expires_at").update({ expires_at: expiresAt })) > 0;
        const previousExpiresAt = hasPrevious ? expiresAt : null;
        if (compromised) await client.revokeTokens();
        const clientSecret = await addSecret(trx, id);
        await client.record("client.secret_rotated", {
          compromised,
          previous_expires_at: previousExpiresAt === null ? null : new Date(previousExpiresAt).toISOString(),
        });
        const rotation = { clientId: id, clientSecret, previousExpiresAt };
        await beforeCommit?.(rotation);
        return rotation;
      }),

    revokeSecret: (
      organizationId: string,
      secretId: string,
      actor: Actor,
    ): Promise<"missing" | "newest" | undefined> =>
      changeClient(organizationId, actor, "missing" as const, async (client) => {
        const now = Date.now();
        const secret = client.trx("client_secrets").where({ id: secretId, client_id: client.id });
        const found = await secret.clone().first("expires_at");
        if (!found || (found.expires_at !== null && found.expires_at <= now)) return "missing";
        if (found.expires_at === null) return "newest";
        await secret.update({ expires_at: now });
        await client.record("client.secret_ended", { secret_id: secretId });
        return undefined;
      }),

    /** Removes all secrets immediately; the client then authenticates with its keys only. */
    removeSecrets: (organizationId: string, actor: Actor): Promise<boolean> =>
      changeClient(organizationId, actor, false, async (client) => {
        const removed = await deleteSecrets(client.trx, client.id);
        if (removed > 0) await client.record("client.secrets_removed");
        return true;
      }),

    /** Records who used a secret, and when. */
    async recordSecretUse(secretId: string, { program, network, lastUsedAt }: SecretCaller): Promise<void> {
      await knex("client_secrets").where({ id: secretId }).update({ last_used_at: lastUsedAt });
      const key = { secret_id: secretId, program, network };
      const times = { last_used_at: lastUsedAt, expires_at: lastUsedAt + CALLER_MS };
      await knex("client_secret_uses")
        .insert({ ...key, ...times })
        .onConflict(["secret_id", "program", "network"])
        .merge();
      const ofSecret = { secret_id: secretId };
      const uses = knex("client_secret_uses").where(ofSecret).orderBy("last_used_at", "desc");
      for (const oldest of (await uses.select("program", "network")).slice(MAX_CALLERS)) {
        await knex("client_secret_uses")
          .where({ ...ofSecret, ...oldest })
          .delete();
      }
    },
  };
}

export const unexpired: Knex.QueryCallback = (secret) =>
  secret.whereNull("expires_at").orWhere("expires_at", ">", Date.now());

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
