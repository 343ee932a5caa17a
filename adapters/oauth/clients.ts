import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { newClientId } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import type { ClientRow } from "../database/tables/oauth.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { lockClient } from "../locks.ts";
import { createChangeClient, FapiConflict, forbidWithFapi, type LockedClient } from "./change-client.ts";
import { createClientKeyStore, type KeyView } from "./client-keys.ts";
import { createFindClient } from "./client-row.ts";
import {
  addSecret,
  createClientSecretStore,
  deleteSecrets,
  type NewClient,
  unexpired,
} from "./client-secrets.ts";
import { revokeGrants } from "./grants.ts";

export { FapiConflict } from "./change-client.ts";
export type { NewClient } from "./client-secrets.ts";

/** Who disabled a client, when and why. `at` is epoch milliseconds; `by` is a user id or `operator`. */
export type Disabled = { at: number; by: string; reason: string | null };

/** A client without the values of its secrets. Times are epoch milliseconds. */
export type ClientView = NonNullable<Awaited<ReturnType<ClientStore["findByOrganization"]>>>;

/** How an organization presents its client to users. */
export type ClientProfile = {
  /** Null while the client has the name of its organization. */
  name: string | null;
  organizationName: string;
  homepage: string | null;
};

export type ClientStore = ReturnType<typeof createClientStore>;

export function createClientStore(database: Database, outbox: Outbox) {
  const { knex } = database;
  const changeClient = createChangeClient(outbox);
  const keyStore = createClientKeyStore(database, changeClient);
  const secretStore = createClientSecretStore(database, changeClient);

  return {
    ...keyStore,
    ...secretStore,

    find: createFindClient(database),

    async findByOrganization(organizationId: string) {
      const client = await knex("clients").where({ organization_id: organizationId }).first();
      if (!client) return undefined;
      const keys = await keyStore.findKeys(client.id);
      return {
        clientId: client.id,
        redirectUris: JSON.parse(client.redirect_uris) as string[],
        secrets: await secretStore.listSecrets(client.id),
        keys: keys.map(({ jwk: _, ...view }): KeyView => view),
        disabled: disabledOf(client),
        /** Whether it follows the FAPI 2.0 Security Profile. */
        fapi: Boolean(client.fapi),
      };
    },

    findProfile: (clientId: string): Promise<ClientProfile | undefined> =>
      knex("clients as c")
        .join("organizations as o", "o.id", "c.organization_id")
        .leftJoin("client_profiles as p", "p.client_id", "c.id")
        .where("c.id", clientId)
        .first({ name: "p.name", organizationName: "o.name", homepage: "p.homepage" }),

    /** Returns false for an organization without a client. */
    setProfile: (
      organizationId: string,
      { name, homepage }: Pick<ClientProfile, "name" | "homepage">,
      actor: Actor,
    ): Promise<boolean> =>
      changeClient(organizationId, actor, false, async ({ trx, id, record }) => {
        await trx("client_profiles")
          .insert({ client_id: id, name, homepage })
          .onConflict("client_id")
          .merge();
        await record("client.profile_changed", { client_name: name, client_uri: homepage });
        return true;
      }),

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
        const before: string[] = JSON.parse(client.row.redirect_uris);
        const after = [...before.filter((uri) => uri !== remove), ...(add === undefined ? [] : [add])];
        check(after);
        if (after.length !== before.length) await storeRedirectUris(client, after);
        return after;
      }),

    /** Stores whether the client follows the FAPI 2.0 Security Profile, from the next request on. Throws FapiConflict. */
    setFapi: (organizationId: string, isOn: boolean, actor: Actor): Promise<boolean> =>
      changeClient(organizationId, actor, false, async (client) => {
        if (Boolean(client.row.fapi) === isOn) return true;
        if (isOn) await requireQualified(client);
        await client.update({ fapi: isOn });
        await client.record("client.fapi_changed", { enabled: isOn });
        return true;
      }),

    /** Disables the client from the next request on: its tokens are inactive, but nothing is revoked. */
    disable: (organizationId: string, reason: string | null, actor: Actor): Promise<Disabled | undefined> =>
      changeClient(organizationId, actor, undefined, async ({ row, update, record }) => {
        const before = disabledOf(row);
        // An owner can't replace what the operator disabled.
        const isKept = before && (before.by === actor.id || before.by === OPERATOR.id);
        if (isKept && (actor.id !== OPERATOR.id || reason === null || reason === before.reason))
          return before;
        const at = before?.at ?? Date.now();
        await update({ disabled_at: at, disabled_by: actor.id, disabled_reason: reason });
        await record("client.disabled", { reason });
        return { at, by: actor.id, reason };
      }),

    /** Enables the client and its unexpired tokens. Only the operator enables what the operator disabled. */
    enable: (organizationId: string, actor: Actor): Promise<"missing" | "operator" | undefined> =>
      changeClient(organizationId, actor, "missing" as const, async ({ row, update, record }) => {
        const before = disabledOf(row);
        if (!before) return undefined;
        if (before.by === OPERATOR.id && actor.id !== OPERATOR.id) return "operator";
        await update({ disabled_at: null, disabled_by: null, disabled_reason: null });
        await record("client.enabled");
        return undefined;
      }),
  };
}

async function storeRedirectUris(client: LockedClient, uris: string[]): Promise<void> {
  if (!uris.every(isHttps)) forbidWithFapi(client, "redirect_uris");
  await client.update({ redirect_uris: JSON.stringify(uris) });
  await client.record("client.redirect_uris_changed", { redirect_uris: uris });
}

/** FAPI 2.0 Security Profile §5.3.2.2. */
function isHttps(uri: string): boolean {
  return uri.startsWith("https://");
}

async function requireQualified({ trx, id, row }: LockedClient): Promise<void> {
  const own = { client_id: id };
  if (!(await trx("client_keys").where(own).first("id"))) throw new FapiConflict("key");
  if (await trx("client_secrets").where(own).where(unexpired).first("id")) throw new FapiConflict("secrets");
  const redirectUris: string[] = JSON.parse(row.redirect_uris);
  if (!redirectUris.every(isHttps)) throw new FapiConflict("redirect_uris");
}

function disabledOf(row: ClientRow): Disabled | null {
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

/** Deletes the organization's client and revokes its grants. */
export async function removeClient(change: Change, organizationId: string): Promise<void> {
  const { trx } = change;
  const client = await lockClient(trx, organizationId);
  if (!client) return;
  const { id } = client;
  await revokeGrants(change, { client_id: id });
  await trx("client_keys").where({ client_id: id }).delete();
  await trx("client_profiles").where({ client_id: id }).delete();
  await deleteSecrets(trx, id);
  await trx("clients").where({ id }).delete();
}
