import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { newClientId } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import type { ClientRow } from "../database/tables/oauth.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { lockClient } from "../locks.ts";
import { createChangeClient, type LockedClient } from "./change-client.ts";
import { createClientKeyStore, type KeyView } from "./client-keys.ts";
import { createClientProfileStore } from "./client-profiles.ts";
import { CLIENT_BY_ID, toClient } from "./client-row.ts";
import {
  addSecret,
  createClientSecretStore,
  deleteSecrets,
  listSecretCallers,
  type NewClient,
  type SecretCaller,
} from "./client-secrets.ts";
import { createFapiStore, forbidWithFapi, isHttps } from "./fapi.ts";
import { revokeGrants } from "./grants.ts";

export type { NewClient, Rotation } from "./client-secrets.ts";
export { FapiConflict } from "./fapi.ts";

/** Who disabled a client, when and why. `at` is epoch milliseconds; `by` is a user id or `operator`. */
export type Disabled = { at: number; by: string; reason: string | null };

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
  disabled: Disabled | null;
  /** Whether it follows the FAPI 2.0 Security Profile. */
  fapi: boolean;
};

const DISABLED = ["disabled_at", "disabled_by", "disabled_reason"] as const;

export type ClientStore = ReturnType<typeof createClientStore>;

export function createClientStore(database: Database, outbox: Outbox) {
  const { knex, lookup } = database;
  const find = lookup(CLIENT_BY_ID);
  const changeClient = createChangeClient(outbox);
  const keyStore = createClientKeyStore(database, changeClient);

  return {
    ...keyStore,
    ...createClientSecretStore(database, changeClient),
    ...createFapiStore(changeClient),
    ...createClientProfileStore(database, changeClient),

    find: async (clientId: string) => toClient(await find(clientId)),

    async findByOrganization(organizationId: string): Promise<ClientView | undefined> {
      const client = await knex("clients")
        .where({ organization_id: organizationId })
        .first("id", "redirect_uris", "fapi", ...DISABLED);
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
      const keys = await keyStore.findKeys(client.id);
      const ids = secrets.map(({ id }) => id);
      const callers = await listSecretCallers(knex, ids);
      return {
        clientId: client.id,
        redirectUris: JSON.parse(client.redirect_uris),
        secrets: secrets.map((secret) => ({ ...secret, callers: callers.get(secret.id) ?? [] })),
        keys: keys.map(({ jwk: _, ...view }) => view),
        disabled: disabledOf(client),
        fapi: Boolean(client.fapi),
      };
    },

    /** Throws FapiConflict. */
    setRedirectUris: (organizationId: string, uris: string[], actor: Actor): Promise<boolean> =>
      changeClient(organizationId, actor, false, async (client) => {
        await storeRedirectUris(client, uris);
        return true;
      }),

    /**
     * Adds a redirect URI, or removes it. `check` sees the resulting list and throws if it isn't allowed. Throws
     * FapiConflict. Resolves to the list, or to undefined for an organization without a client.
     */
    changeRedirectUris: (
      organizationId: string,
      { add, remove }: { add?: string; remove?: string },
      check: (uris: string[]) => void,
      actor: Actor,
    ): Promise<string[] | undefined> =>
      changeClient(organizationId, actor, undefined, async (client) => {
        const row = await client.trx("clients").where({ id: client.id }).first("redirect_uris");
        const before: string[] = JSON.parse(row?.redirect_uris ?? "[]");
        const after = [...before.filter((uri) => uri !== remove), ...(add === undefined ? [] : [add])];
        check(after);
        if (after.length !== before.length) await storeRedirectUris(client, after);
        return after;
      }),

    /** Disables the client from the next request on: its tokens are inactive, but nothing is revoked. */
    disable: (organizationId: string, reason: string | null, actor: Actor): Promise<Disabled | undefined> =>
      changeClient(organizationId, actor, undefined, async ({ trx, id, record }) => {
        const before = await findDisabled(trx, id);
        // An owner can't replace what the operator disabled.
        const isKept = before && (before.by === actor.id || before.by === OPERATOR.id);
        if (isKept && (actor.id !== OPERATOR.id || reason === null || reason === before.reason))
          return before;
        const after: Disabled = { at: before?.at ?? Date.now(), by: actor.id, reason };
        await trx("clients")
          .where({ id })
          .update({ disabled_at: after.at, disabled_by: after.by, disabled_reason: reason });
        await record("client.disabled", { reason });
        return after;
      }),

    /** Enables the client and its unexpired tokens. Only the operator enables what the operator disabled. */
    enable: (organizationId: string, actor: Actor): Promise<"missing" | "operator" | undefined> =>
      changeClient(organizationId, actor, "missing" as const, async ({ trx, id, record }) => {
        const before = await findDisabled(trx, id);
        if (!before) return undefined;
        if (before.by === OPERATOR.id && actor.id !== OPERATOR.id) return "operator";
        await trx("clients")
          .where({ id })
          .update({ disabled_at: null, disabled_by: null, disabled_reason: null });
        await record("client.enabled");
        return undefined;
      }),
  };
}

async function storeRedirectUris(client: LockedClient, uris: string[]): Promise<void> {
  const { trx, id, record } = client;
  if (!uris.every(isHttps)) await forbidWithFapi(client, "redirect_uris");
  await trx("clients")
    .where({ id })
    .update({ redirect_uris: JSON.stringify(uris) });
  await record("client.redirect_uris_changed", { redirect_uris: uris });
}

async function findDisabled(trx: Knex.Transaction, id: string): Promise<Disabled | null> {
  const row = await trx("clients")
    .where({ id })
    .first(...DISABLED);
  return row ? disabledOf(row) : null;
}

function disabledOf(row: Pick<ClientRow, (typeof DISABLED)[number]>): Disabled | null {
  const { disabled_at: at, disabled_by: by, disabled_reason: reason } = row;
  return at === null || by === null ? null : { at, by, reason };
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
export async function removeClient(change: Change, organizationId: string): Promise<void> {
  const { trx } = change;
  const id = await lockClient(trx, organizationId);
  if (!id) return;
  await revokeGrants(change, { client_id: id });
  await trx("client_keys").where({ client_id: id }).delete();
  await trx("client_profiles").where({ client_id: id }).delete();
  await deleteSecrets(trx, id);
  await trx("clients").where({ id }).delete();
}
