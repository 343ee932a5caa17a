import type { Actor } from "../../../resources/access/actor.ts";
import { sha256 } from "../../crypto/hash.ts";
import { newId } from "../../crypto/ids.ts";
import { isDuplicate } from "../../database/engine.ts";
import type { PasskeyRow } from "../../database/factor-tables.ts";
import type { Database } from "../../database/index.ts";
import type { Outbox } from "../../events/outbox.ts";
import { lockUser } from "../../organizations/reset-revocation.ts";
import { endSessionsOfCredential, endSessionsWithFactor } from "../sessions.ts";
import { recordChange } from "./record-change.ts";
import { deleteCodesWithoutFactor, ensureRecoveryCodes } from "./recovery-codes.ts";

/** What an authenticator registered. `credentialId` and `publicKey` are in base64url. */
export type NewPasskey = {
  credentialId: string;
  publicKey: string;
  counter: number;
  transports: string[];
  /** Whether it may be copied to other devices of the user. */
  synced: boolean;
  name: string;
};

/** A passkey of a user. Times are epoch milliseconds. */
export type Passkey = NewPasskey & {
  id: string;
  userId: string;
  createdAt: number;
  lastUsedAt: number | null;
};

/** Stores the passkeys of users: their public keys, which are no secrets. */
export type PasskeyStore = {
  list(userId: string): Promise<Passkey[]>;
  findByCredential(credentialId: string): Promise<Passkey | undefined>;
  /**
   * Adds a passkey of the actor. Resolves to the new recovery codes, empty if the user already has some, or to undefined if
   * the passkey is already registered.
   */
  add(passkey: NewPasskey, actor: Actor): Promise<string[] | undefined>;
  /**
   * Records a use. Returns false if the signature counter has not increased, which a copied authenticator causes
   * (WebAuthn §6.1.1), or if the passkey was removed. Concurrent calls with the same counter succeed once.
   */
  use(id: string, counter: number): Promise<boolean>;
  /**
   * Removes a passkey of the actor, and ends the sessions that it started and the others, except one, in which a passkey was
   * the second factor. Resolves to why not: there is none of that id, or it is the user's only way to sign in.
   */
  remove(id: string, actor: Actor, keptId: string): Promise<"missing" | "only_way_in" | undefined>;
};

export function createPasskeyStore({ knex, transaction }: Database, outbox: Outbox): PasskeyStore {
  return {
    async list(userId) {
      return (await knex("passkeys").where({ user_id: userId }).orderBy("id")).map(toPasskey);
    },

    async findByCredential(credentialId) {
      const row = await knex("passkeys")
        .where({ credential_hash: sha256(credentialId) })
        .first();
      return row && toPasskey(row);
    },

    async add({ credentialId, publicKey, transports, ...passkey }, actor) {
      const userId = actor.id;
      try {
        return await transaction(async (trx) => {
          await lockUser(trx, userId);
          await trx("passkeys").insert({
            ...passkey,
            id: newId("psk"),
            user_id: userId,
            credential_hash: sha256(credentialId),
            credential_id: credentialId,
            public_key: publicKey,
            transports: transports.join(" "),
            created_at: Date.now(),
          });
          const type = "member.second_factor_added";
          await recordChange(trx, outbox, actor, userId, { type, method: "passkey", name: passkey.name });
          return ensureRecoveryCodes(trx, userId);
        });
      } catch (error) {
        if (isDuplicate(error)) return undefined;
        throw error;
      }
    },

    async use(id, counter) {
      const used = await knex("passkeys")
        .where({ id })
        // Authenticators without a counter always report 0.
        .where("counter", counter === 0 ? "=" : "<", counter)
        .update({ counter, last_used_at: Date.now() });
      return used > 0;
    },

    remove: (id, actor, keptId) =>
      transaction(async (trx) => {
        const userId = actor.id;
        await lockUser(trx, userId);
        const keys = await trx("passkeys").where({ user_id: userId }).select("id", "name");
        const name = keys.find((key) => key.id === id)?.name;
        if (name === undefined) return "missing";
        const user = await trx("users").where({ id: userId }).first("password_hash");
        const identity = await trx("identities").where({ user_id: userId }).first("subject");
        if (!user?.password_hash && !identity && keys.length < 2) return "only_way_in";
        await trx("passkeys").where({ id }).delete();
        await endSessionsOfCredential(trx, userId, id);
        await endSessionsWithFactor(trx, outbox, actor, "passkey", keptId);
        await deleteCodesWithoutFactor(trx, userId);
        const type = "member.second_factor_removed";
        await recordChange(trx, outbox, actor, userId, { type, method: "passkey", name });
        return undefined;
      }),
  };
}

function toPasskey(row: PasskeyRow): Passkey {
  return {
    id: row.id,
    userId: row.user_id,
    credentialId: row.credential_id,
    publicKey: row.public_key,
    counter: row.counter,
    transports: row.transports.split(" ").filter(Boolean),
    synced: Boolean(row.synced),
    name: row.name,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
  };
}
