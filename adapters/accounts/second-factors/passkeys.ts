import type { Actor } from "../../../resources/access/actor.ts";
import { camelKeys } from "../../../resources/http/text.ts";
import { newId, sha256 } from "../../crypto/ids.ts";
import { ifDuplicate } from "../../database/errors.ts";
import type { Database } from "../../database/index.ts";
import type { PasskeyRow } from "../../database/tables/accounts.ts";
import type { Outbox } from "../../events/outbox.ts";
import { lockUser } from "../../locks.ts";
import { endSessions, endSessionsWithFactor } from "../sessions.ts";
import { recordFactorChange } from "./record-change.ts";
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
export type Passkey = ReturnType<typeof toPasskey>;

export type PasskeyStore = ReturnType<typeof createPasskeyStore>;

export function createPasskeyStore({ knex }: Database, outbox: Outbox) {
  return {
    async list(userId: string): Promise<Passkey[]> {
      return (await knex("passkeys").where({ user_id: userId }).orderBy("id")).map(toPasskey);
    },

    async findByCredential(credentialId: string): Promise<Passkey | undefined> {
      const row = await knex("passkeys")
        .where({ credential_hash: sha256(credentialId) })
        .first();
      return row && toPasskey(row);
    },

    /** Returns new recovery codes, none if the user already has some; undefined for a registered passkey. */
    add: (added: NewPasskey, actor: Actor): Promise<string[] | undefined> =>
      outbox
        .change(actor, async (change) => {
          const { trx } = change;
          const { credentialId, publicKey, transports, ...passkey } = added;
          const userId = actor.id;
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
          await recordFactorChange(change, userId, { type, method: "passkey", name: passkey.name });
          return ensureRecoveryCodes(trx, userId);
        })
        .catch(ifDuplicate(undefined)),

    /** False if the signature counter has not increased, which a copied authenticator causes (WebAuthn §6.1.1). */
    async use(id: string, counter: number): Promise<boolean> {
      const used = await knex("passkeys")
        .where({ id })
        // Authenticators without a counter always report 0.
        .where("counter", counter === 0 ? "=" : "<", counter)
        .update({ counter, last_used_at: Date.now() });
      return used > 0;
    },

    /** Removes a passkey, and ends its sessions and those where one was the second factor. May return a refusal. */
    remove: (id: string, actor: Actor, keptId: string): Promise<"missing" | "only_way_in" | undefined> =>
      outbox.change(actor, async (change) => {
        const { trx } = change;
        const userId = actor.id;
        const user = await lockUser(trx, userId);
        const keys = await trx("passkeys").where({ user_id: userId }).select("id", "name");
        const name = keys.find((key) => key.id === id)?.name;
        if (name === undefined) return "missing";
        const identity = await trx("identities").where({ user_id: userId }).first("subject");
        if (!user?.password_hash && !identity && keys.length < 2) return "only_way_in";
        await trx("passkeys").where({ id }).delete();
        await endSessions(trx, { user_id: userId, credential: id });
        await endSessionsWithFactor(change, "passkey", keptId);
        await deleteCodesWithoutFactor(trx, userId);
        const type = "member.second_factor_removed";
        await recordFactorChange(change, userId, { type, method: "passkey", name });
        return undefined;
      }),
  };
}

function toPasskey({ credential_hash: _, ...row }: PasskeyRow) {
  return {
    ...camelKeys(row),
    transports: row.transports.split(" ").filter(Boolean),
    synced: Boolean(row.synced),
  };
}
