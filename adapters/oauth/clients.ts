import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import { type Client, type ClientRow, selectClient, toClient } from "./client-row.ts";
import type { Database } from "./database.ts";
import { endGrants } from "./grants.ts";
import { sha256 } from "./hash.ts";
import { newClientId, newId, newSecret } from "./id.ts";
import type { Journal } from "./journal.ts";

/** A client with its secret, at the only time that it is known. */
export type NewClient = { clientId: string; clientSecret: string };

/** A client as its owner sees it: never a secret. Times are epoch milliseconds. */
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

export type Rotation = NewClient & { previousExpiresAt: number };

/** The clients of organizations. */
export type ClientStore = {
  /** Finds a client with its organization and its live secrets, in one statement. */
  find(clientId: string): Promise<Client | undefined>;
  ofOrganization(organizationId: string): Promise<ClientView | undefined>;
  /**
   * Makes a new secret; the one before lives on for `overlapMs`, older ones end now. `compromised` ends every
   * older secret, token and grant of the client now. Nothing when the organization has no client.
   */
  rotateSecret(
    organizationId: string,
    options: { overlapMs: number; compromised: boolean },
    by: By,
  ): Promise<Rotation | undefined>;
  /** Ends an older secret now; the newest one stays. */
  endSecret(organizationId: string, secretId: string, by: By): Promise<"missing" | "newest" | undefined>;
  /** Replaces the list. False when the organization has no client. */
  setRedirectUris(organizationId: string, uris: string[], by: By): Promise<boolean>;
  /** Notes that a secret was used. */
  markSecretUsed(secretId: string, at: number): Promise<void>;
};

/** The clients of a database. */
export function createClientStore({ knex, prepare, transaction }: Database, journal: Journal): ClientStore {
  const select = prepare<ClientRow[]>((q, { clientId, now }) => selectClient(q, clientId, now));

  return {
    async find(clientId) {
      return toClient(await select({ clientId, now: Date.now() }));
    },

    async ofOrganization(organizationId) {
      const client = await knex("clients")
        .where({ organization_id: organizationId })
        .first("id", "redirect_uris");
      if (!client) return undefined;
      const secrets = await knex("client_secrets")
        .where({ client_id: client.id })
        .where((live) => live.whereNull("expires_at").orWhere("expires_at", ">", Date.now()))
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

    rotateSecret: (organizationId, { overlapMs, compromised }, by) =>
      transaction(async (trx) => {
        const id = await lockClient(trx, organizationId);
        if (!id) return undefined;
        const now = Date.now();
        if (compromised) await trx("clients").where({ id }).increment("generation");
        const previousExpiresAt = compromised ? now : now + overlapMs;
        await endSecrets(trx, id, now, previousExpiresAt);
        if (compromised) await endGrants(trx, journal, by, { client_id: id });
        const clientSecret = await addSecret(trx, id);
        await journal.record(trx, by, {
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
      }),

    endSecret: (organizationId, secretId, by) =>
      transaction(async (trx) => {
        const clientId = await lockClient(trx, organizationId);
        if (!clientId) return "missing";
        const now = Date.now();
        const secret = trx("client_secrets").where({ id: secretId, client_id: clientId });
        const found = await secret.clone().first("expires_at");
        if (!found || (found.expires_at !== null && found.expires_at <= now)) return "missing";
        if (found.expires_at === null) return "newest";
        await secret.update({ expires_at: now });
        await journal.record(trx, by, {
          organizationId,
          type: "client.secret_ended",
          subject: clientId,
          data: { client_id: clientId, secret_id: secretId },
        });
        return undefined;
      }),

    setRedirectUris: (organizationId, uris, by) =>
      transaction(async (trx) => {
        const id = await lockClient(trx, organizationId);
        if (!id) return false;
        await trx("clients")
          .where({ id })
          .update({ redirect_uris: JSON.stringify(uris) });
        await journal.record(trx, by, {
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

/**
 * Locks the organization's client until the caller's transaction ends, and returns its id. Every transaction takes its
 * locks in the same order to avoid deadlocks: the organization (`lockOrganization`), its client, then secrets and grants.
 */
async function lockClient(trx: Knex, organizationId: string): Promise<string | undefined> {
  const client = () => trx("clients").where({ organization_id: organizationId });
  if (!(await client().update({ updated_at: Date.now() }))) return undefined;
  return (await client().first("id")).id;
}

/** Makes the organization's client in the caller's transaction; nothing when it has one already. */
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

/** Ends the organization's client for good, with whatever people allowed it; part of the caller's transaction. */
export async function removeClient(
  trx: Knex.Transaction,
  journal: Journal,
  by: By,
  organizationId: string,
): Promise<void> {
  const id = await lockClient(trx, organizationId);
  if (!id) return;
  await endGrants(trx, journal, by, { client_id: id });
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

/** The newest secret ends at `previousExpiresAt`, one that was ending already ends now. */
async function endSecrets(
  trx: Knex,
  clientId: string,
  now: number,
  previousExpiresAt: number,
): Promise<void> {
  const live = () => trx("client_secrets").where({ client_id: clientId });
  await live().where("expires_at", ">", now).update({ expires_at: now });
  await live().whereNull("expires_at").update({ expires_at: previousExpiresAt });
}
