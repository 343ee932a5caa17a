import type { Actor } from "../../resources/access/actor.ts";
import { camelKeys } from "../../resources/http/text.ts";
import { newId } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import { type ChangeClient, forbidWithFapi } from "./change-client.ts";

/** A public key of a client, without the key itself. Times are epoch milliseconds. */
export type KeyView = {
  id: string;
  /** The thumbprint of the key (RFC 7638). */
  thumbprint: string;
  createdAt: number;
  lastUsedAt: number | null;
};

/** A public key that a client authenticates with (RFC 7523), as a JWK (RFC 7517). */
type ClientKey = KeyView & { jwk: Record<string, unknown> };

// One in use, and the next one during a rotation.
const MAX_KEYS = 2;

export function createClientKeyStore({ knex }: Database, changeClient: ChangeClient) {
  async function findKeys(clientId: string, query = knex): Promise<ClientKey[]> {
    const rows = await query("client_keys")
      .where({ client_id: clientId })
      .orderBy("id", "desc")
      .select("id", "thumbprint", "jwk", "created_at", "last_used_at");
    return rows.map((row) => ({ ...camelKeys(row), jwk: JSON.parse(row.jwk) }));
  }

  return {
    findKeys,

    /** Adds a public key, unless the client already has it or two others. */
    addKey: (
      organizationId: string,
      { jwk, thumbprint }: Pick<ClientKey, "jwk" | "thumbprint">,
      actor: Actor,
    ): Promise<KeyView | "missing" | "duplicate" | "limit"> =>
      changeClient(organizationId, actor, "missing" as const, async (client) => {
        const keys = await findKeys(client.id, client.trx);
        if (keys.some((key) => key.thumbprint === thumbprint)) return "duplicate";
        if (keys.length >= MAX_KEYS) return "limit";
        const id = newId("key");
        const createdAt = Date.now();
        await client.trx("client_keys").insert({
          id,
          client_id: client.id,
          thumbprint,
          jwk: JSON.stringify(jwk),
          created_by: actor.id,
          created_at: createdAt,
        });
        await client.record("client.key_added", { key_id: id, thumbprint });
        return { id, thumbprint, createdAt, lastUsedAt: null };
      }),

    /**
     * Removes a key; false if there is none. `compromised` also revokes all tokens and grants of the client. Throws
     * FapiConflict for the last key of a client that follows FAPI 2.0.
     */
    removeKey: (
      organizationId: string,
      keyId: string,
      { compromised }: { compromised: boolean },
      actor: Actor,
    ): Promise<boolean> =>
      changeClient(organizationId, actor, false, async (client) => {
        const key = client.trx("client_keys").where({ id: keyId, client_id: client.id });
        const removed = await key.clone().first("thumbprint");
        if (!removed) return false;
        await key.delete();
        if (!(await client.trx("client_keys").where({ client_id: client.id }).first("id")))
          forbidWithFapi(client, "last_key");
        if (compromised) await client.revokeTokens();
        const { thumbprint } = removed;
        await client.record("client.key_removed", { key_id: keyId, thumbprint, compromised });
        return true;
      }),

    /** Records when a key was used, in epoch milliseconds. */
    async markKeyUsed(keyId: string, at: number): Promise<void> {
      await knex("client_keys").where({ id: keyId }).update({ last_used_at: at });
    },
  };
}
