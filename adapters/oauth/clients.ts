import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { newClientId } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { addKey, type ClientKey, type KeyView, listKeys, removeKey } from "./client-keys.ts";
import { lockClient } from "./client-lock.ts";
import { CLIENT_BY_ID, type Client, toClient } from "./client-row.ts";
import { listSecretCallers, recordSecretUse, type SecretCaller } from "./client-secret-uses.ts";
import {
  addSecret,
  deleteSecrets,
  type NewClient,
  type Rotation,
  removeSecrets,
  revokeSecret,
  rotateSecret,
} from "./client-secrets.ts";
import { type Disabled, disableClient, disabledOf, enableClient } from "./client-switch.ts";
import { revokeGrants } from "./grants.ts";

export type { NewClient, Rotation } from "./client-secrets.ts";

/** A client without the values of its secrets. Times are epoch milliseconds. */
export type ClientView = {
  clientId: string;
  redirectUris: string[];
  secrets: {
    id: string;
    last4: string;
    createdAt: number;
    expiresAt: number | null;
    lastUsedAt: number | null;
    /** Who used it in the last 30 days, most recent first. */
    callers: SecretCaller[];
  }[];
  keys: KeyView[];
  /** Null if the client is enabled. */
  disabled: Disabled | null;
};

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
  /**
   * Removes all secrets immediately; the client then authenticates with its keys only. Returns false if the organization
   * has no client.
   */
  removeSecrets(organizationId: string, actor: Actor): Promise<boolean>;
  /** Adds a public key, unless the client already has it or two others. */
  addKey(
    organizationId: string,
    key: Pick<ClientKey, "jwk" | "thumbprint">,
    actor: Actor,
  ): Promise<KeyView | "missing" | "duplicate" | "limit">;
  /** Removes a key. `compromised` also revokes all tokens and grants of the client. Returns whether there was one. */
  removeKey(
    organizationId: string,
    keyId: string,
    options: { compromised: boolean },
    actor: Actor,
  ): Promise<boolean>;
  /** Finds the public keys of a client. */
  findKeys(clientId: string): Promise<ClientKey[]>;
  /** Records when a key was used, in epoch milliseconds. */
  markKeyUsed(keyId: string, at: number): Promise<void>;
  /** Replaces the redirect URIs. Returns false if the organization has no client. */
  setRedirectUris(organizationId: string, uris: string[], actor: Actor): Promise<boolean>;
  /**
   * Disables the client from the next request on: it gets no tokens, and those it has are inactive. Nothing is revoked.
   * Resolves to undefined if the organization has no client.
   */
  disable(organizationId: string, reason: string | null, actor: Actor): Promise<Disabled | undefined>;
  /** Enables the client and its unexpired tokens. Only the operator enables what the operator disabled. */
  enable(organizationId: string, actor: Actor): Promise<"missing" | "operator" | undefined>;
  /** Records who used a secret, and when. */
  recordSecretUse(secretId: string, caller: SecretCaller): Promise<void>;
};

/** Creates the client store of a database. */
export function createClientStore({ knex, lookup, transaction }: Database, outbox: Outbox): ClientStore {
  const find = lookup(CLIENT_BY_ID);

  return {
    async find(clientId) {
      return toClient(await find(clientId));
    },

    async findByOrganization(organizationId) {
      const client = await knex("clients")
        .where({ organization_id: organizationId })
        .first("id", "redirect_uris", "disabled_at", "disabled_by", "disabled_reason");
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
      const keys = await listKeys(knex, client.id);
      const callers = await listSecretCallers(
        knex,
        secrets.map(({ id }) => id),
      );
      return {
        clientId: client.id,
        redirectUris: JSON.parse(client.redirect_uris),
        secrets: secrets.map((secret) => ({ ...secret, callers: callers.get(secret.id) ?? [] })),
        keys: keys.map(({ jwk: _, ...view }) => view),
        disabled: disabledOf(client),
      };
    },

    rotateSecret: (organizationId, options, actor) =>
      transaction((trx) => rotateSecret(trx, outbox, actor, organizationId, options)),

    revokeSecret: (organizationId, secretId, actor) =>
      transaction((trx) => revokeSecret(trx, outbox, actor, organizationId, secretId)),

    removeSecrets: (organizationId, actor) =>
      transaction((trx) => removeSecrets(trx, outbox, actor, organizationId)),

    addKey: (organizationId, key, actor) =>
      transaction((trx) => addKey(trx, outbox, actor, organizationId, key)),

    removeKey: (organizationId, keyId, { compromised }, actor) =>
      transaction((trx) => removeKey(trx, outbox, actor, { organizationId, keyId, compromised })),

    findKeys: (clientId) => listKeys(knex, clientId),

    async markKeyUsed(keyId, at) {
      await knex("client_keys").where({ id: keyId }).update({ last_used_at: at });
    },

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

    disable: (organizationId, reason, actor) =>
      transaction((trx) => disableClient(trx, outbox, actor, { organizationId, reason })),

    enable: (organizationId, actor) => transaction((trx) => enableClient(trx, outbox, actor, organizationId)),

    recordSecretUse: (secretId, caller) => recordSecretUse(knex, secretId, caller),
  };
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
  await deleteSecrets(trx, id);
  await trx("clients").where({ id }).delete();
}
