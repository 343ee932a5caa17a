import type { Actor } from "../../../resources/access/actor.ts";
import type { Encryption } from "../../crypto/encryption.ts";
import type { Database } from "../../database/index.ts";
import { type TotpSecretRow, totpSecrets } from "../../database/tables/accounts.ts";
import { contextOf } from "../../database/tables/columns.ts";
import type { Outbox } from "../../events/outbox.ts";
import { lockUser } from "../../locks.ts";
import type { SingleUse } from "../../oauth/replay.ts";
import { endSessionsWithFactor } from "../sessions.ts";
import { recordFactorChange } from "./record-change.ts";
import { type CodeUse, deleteCodesWithoutFactor, ensureRecoveryCodes, useCode } from "./recovery-codes.ts";

/** Stores the secrets of authenticator apps (RFC 6238), one per user. Secrets are in base32. */
export function createTotpStore({ knex, transaction }: Database, outbox: Outbox, encryption: Encryption) {
  function read(row: Pick<TotpSecretRow, "secret"> | undefined, userId: string): string | undefined {
    return row && encryption.decrypt(row.secret, contextOf(totpSecrets.columns.secret, userId));
  }

  return {
    /** Stores a secret that doesn't count until it is confirmed. Returns false if the user has a confirmed one. */
    start: (userId: string, secret: string): Promise<boolean> =>
      transaction(async (trx) => {
        await lockUser(trx, userId);
        const existing = await trx("totp_secrets").where({ user_id: userId }).first("confirmed_at");
        if (existing?.confirmed_at) return false;
        await trx("totp_secrets").where({ user_id: userId }).delete();
        await trx("totp_secrets").insert({
          user_id: userId,
          secret: encryption.encrypt(secret, contextOf(totpSecrets.columns.secret, userId)),
          created_at: Date.now(),
        });
        return true;
      }),

    async findPending(user_id: string): Promise<string | undefined> {
      const row = await knex("totp_secrets").where({ user_id, confirmed_at: null }).first("secret");
      return read(row, user_id);
    },

    async find(user_id: string): Promise<string | undefined> {
      const row = await knex("totp_secrets").where({ user_id }).whereNotNull("confirmed_at").first("secret");
      return read(row, user_id);
    },

    /** Returns new recovery codes, none if the user already has some; undefined if this secret isn't pending. */
    confirm: (secret: string, step: number, actor: Actor): Promise<string[] | undefined> =>
      outbox.change(actor, async (change) => {
        const { trx } = change;
        const user_id = actor.id;
        await lockUser(trx, user_id);
        const pending = trx("totp_secrets").where({ user_id, confirmed_at: null });
        // Another tab may have replaced the secret.
        if (read(await pending.clone().first("secret"), user_id) !== secret) return undefined;
        const now = Date.now();
        await pending.update({ confirmed_at: now, last_step: step, last_used_at: now });
        await recordFactorChange(change, user_id, { type: "member.second_factor_added", method: "totp" });
        return ensureRecoveryCodes(trx, user_id);
      }),

    /** Uses a time step for a login: of calls with the same or an older step or login token, at most one succeeds. */
    useStep: (userId: string, step: number, loginToken: SingleUse): Promise<CodeUse> =>
      useCode(outbox, { id: userId }, loginToken, async ({ trx }) => {
        const accepted = await trx("totp_secrets")
          .where({ user_id: userId })
          .whereNotNull("confirmed_at")
          // RFC 6238 §5.2: a code must not be accepted twice
          .where("last_step", "<", step)
          .update({ last_step: step, last_used_at: Date.now() });
        return accepted > 0;
      }),

    /** Removes the app, and the recovery codes if the user has no other second factor. */
    remove: (actor: Actor, keptId: string): Promise<boolean> =>
      outbox.change(actor, async (change) => {
        const { trx } = change;
        const user_id = actor.id;
        await lockUser(trx, user_id);
        const removed = await trx("totp_secrets").where({ user_id }).whereNotNull("confirmed_at").delete();
        if (!removed) return false;
        await endSessionsWithFactor(change, "totp", keptId);
        await deleteCodesWithoutFactor(trx, user_id);
        await recordFactorChange(change, user_id, { type: "member.second_factor_removed", method: "totp" });
        return true;
      }),
  };
}
