import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { sha256 } from "../crypto/hash.ts";
import { newClientId, newId, newSecret } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { type Client, type JoinedClientRow, selectClient, toClient } from "./client-row.ts";
import { revokeGrants } from "./grants.ts";

/** A client with a new secret. Only a hash of the secret is stored, so this is the only time it is known. */
export type NewClient = { clientId: string; clientSecret: string };

/** A client without its secrets. Times are epoch milliseconds. */
export type ClientView = {
  clientId: string;
  redirectUris: string[];
  secrets: {
    id: string;
    last4: string;
    createdAt: number;
    expiresAt: number | null;
    lastUsedAt: number | null;
  }[];
};

/** The result of a rotation. `previousExpiresAt` is when the previous secret expires. */
export type Rotation = NewClient & { previousExpiresAt: number };

/** Stores the clients of organizations. */
export type ClientStore = {
  /** Finds a client with its organization and its unexpired secrets. */
  find(clientId: string): Promise<Client | undefined>;
  findByOrganization(organizationId: string): Promise<ClientView | undefined>;
  /**
   * Creates a new secret. The previous one stays valid for `overlapMs`, older ones expire immediately. `compromised`
   * revokes all previous secrets, tokens and grants immediately. Resolves to undefined if the organization has no client.
   */
  rotateSecret(
    organizationId: string,
    options: { overlapMs: number; compromised: boolean },
    actor: Actor,
  ): Promise<Rotation | undefined>;
  /** Revokes a previous secret immediately. Refuses to revoke the newest one. */
  revokeSecret(
    organizationId: string,
    secretId: string,
    actor: Actor,
  ): Promise<"missing" | "newest" | undefined>;
  /** Replaces the redirect URIs. Returns false if the organization has no client. */
  setRedirectUris(organizationId: string, uris: string[], actor: Actor): Promise<boolean>;
  /** Records when a secret was used, in epoch milliseconds. */
  markSecretUsed(secretId: string, at: number): Promise<void>;
};

/** Creates the client store of a database. */
export function createClientStore({ knex, prepare, transaction }: Database, outbox: Outbox): ClientStore {
  const select = prepare<JoinedClientRow[], "clientId" | "now">((q, { clientId, now }) =>
    selectClient(q, clientId, now),
  );

  return {
    async find(clientId) {
      return toClient(await select({ clientId, now: Date.now() }));
    },

    async findByOrganization(organizationId) {
      const client = await knex("clients")
        .where({ organization_id: organizationId })
        .first("id", "redirect_uris");
      if (!client) return undefined;
      const secrets = await knex("client_secrets")
        .where({ client_id: client.id })
        .where((unexpired) => unexpired.whereNull("expires_at").orWhere("expires_at", ">", Date.now()))
        .orderBy("id", "desc")
        .select({
          id: "id",
          last4: "last4",
          createdAt: "created_at",
          expiresAt: "expires_at",
          lastUsedAt: "last_used_at",
        });
      return { clientId: client.id, redirectUris: JSON.parse(client.redirect_uris), secrets };
    },

    rotateSecret: (organizationId, options, actor) =>
      transaction((trx) => rotateSecret(trx, outbox, actor, organizationId, options)),

    revokeSecret: (organizationId, secretId, actor) =>
      transaction((trx) => revokeSecret(trx, outbox, actor, organizationId, secretId)),

    setRedirectUris: (organizationId, uris, actor) =>
      transaction(async (trx) => {
        const id = await lockClient(trx, organizationId);
        if (!id) return false;
        await trx("clients")
          .where({ id })
          .update({ redirect_uris: JSON.stringify(uris) });
        await outbox.record(trx, actor, {
          organizationId,
          type: "client.redirect_uris_changed",
          subject: id,
          data: { client_id: id, redirect_uris: uris },
        });
        return true;
      }),

    async markSecretUsed(secretId, at) {
      await knex("client_secrets").where({ id: secretId }).update({ last_used_at: at });
    },
  };
}

async function rotateSecret(
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
  const previousExpiresAt = compromised ? now : now + overlapMs;
  await expireSecrets(trx, id, now, previousExpiresAt);
  if (compromised) await revokeGrants(trx, outbox, actor, { client_id: id });
  const clientSecret = await addSecret(trx, id);
  await outbox.record(trx, actor, {
    organizationId,
    type: "client.secret_rotated",
    subject: id,
    data: {
      client_id: id,
      compromised,
      previous_expires_at: new Date(previousExpiresAt).toISOString(),
    },
  });
  return { clientId: id, clientSecret, previousExpiresAt };
}

async function revokeSecret(
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

/**
 * Locks the organization's client until the caller's transaction ends and returns its id. To avoid deadlocks, every
 * transaction locks in the same order: the organization (`lockOrganization`), its client, then secrets and grants.
 */
async function lockClient(trx: Knex, organizationId: string): Promise<string | undefined> {
  const client = () => trx("clients").where({ organization_id: organizationId });
  if (!(await client().update({ updated_at: Date.now() }))) return undefined;
  return (await client().first("id"))?.id;
}

/** Creates the organization's client, unless it has one. Part of the caller's transaction. */
export async function createClientFor(trx: Knex, organizationId: string): Promise<NewClient | undefined> {
  const existing = await trx("clients").where({ organization_id: organizationId }).first("id");
  if (existing) return undefined;
  const clientId = newClientId();
  const now = Date.now();
  await trx("clients").insert({
    id: clientId,
    organization_id: organizationId,
    redirect_uris: "[]",
    created_at: now,
    updated_at: now,
  });
  return { clientId, clientSecret: await addSecret(trx, clientId) };
}

/** Deletes the organization's client and revokes its grants. Part of the caller's transaction. */
export async function removeClient(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  organizationId: string,
): Promise<void> {
  const id = await lockClient(trx, organizationId);
  if (!id) return;
  await revokeGrants(trx, outbox, actor, { client_id: id });
  await trx("client_keys").where({ client_id: id }).delete();
  await trx("client_secrets").where({ client_id: id }).delete();
  await trx("clients").where({ id }).delete();
}

async function addSecret(trx: Knex, clientId: string): Promise<string> {
  const secret = newSecret("lgs_");
  await trx("client_secrets").insert({
    id: newId("sec"),
    client_id: clientId,
    hash: sha256(secret),
    last4: secret.slice(-4),
    created_at: Date.now(),
  });
  return secret;
}

/** Lets the newest secret expire at `previousExpiresAt`. Secrets that were already expiring expire now. */
async function expireSecrets(
  trx: Knex,
  clientId: string,
  now: number,
  previousExpiresAt: number,
): Promise<void> {
  const secrets = () => trx("client_secrets").where({ client_id: clientId });
  await secrets().where("expires_at", ">", now).update({ expires_at: now });
  await secrets().whereNull("expires_at").update({ expires_at: previousExpiresAt });
}
