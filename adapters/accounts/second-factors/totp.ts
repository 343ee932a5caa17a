import type { Actor } from "../../../resources/access/actor.ts";
import type { Encryption } from "../../crypto/encryption.ts";
import type { TotpSecretRow } from "../../database/factor-tables.ts";
import type { Database } from "../../database/index.ts";
import type { Outbox } from "../../events/outbox.ts";
import type { SingleUse } from "../../oauth/replay.ts";
import { lockUser } from "../../organizations/reset-revocation.ts";
import { endSessionsWithFactor } from "../sessions.ts";
import { recordChange } from "./record-change.ts";
import { deleteCodesWithoutFactor, ensureRecoveryCodes } from "./recovery-codes.ts";
import { type CodeUse, useCode } from "./use-code.ts";

/** Stores the secrets of authenticator apps (RFC 6238), one per user. Secrets are in base32. */
export type TotpStore = {
  /** Stores a secret that doesn't count until it is confirmed. Returns false if the user has a confirmed one. */
  start(userId: string, secret: string): Promise<boolean>;
  /** Returns the secret that waits for its confirmation. */
  findPending(userId: string): Promise<string | undefined>;
  /** Returns the confirmed secret. */
  find(userId: string): Promise<string | undefined>;
  /**
   * Confirms the pending secret with a code of a time step. Resolves to the new recovery codes, empty if the user already
   * has some, or to undefined if there is no such secret.
   */
  confirm(secret: string, step: number, actor: Actor): Promise<string[] | undefined>;
  /**
   * Uses the code of a time step for a login. Of any number of calls with the same or an older step, or with the same login
   * token, at most one succeeds.
   */
  useStep(userId: string, step: number, loginToken: SingleUse): Promise<CodeUse>;
  /** Removes the app, and the recovery codes if the user has no other second factor. */
  remove(actor: Actor, keptId: string): Promise<boolean>;
};

export function createTotpStore(database: Database, outbox: Outbox, encryption: Encryption): TotpStore {
  const { knex, transaction } = database;

  function read(row: Pick<TotpSecretRow, "secret"> | undefined, userId: string): string | undefined {
    return row && encryption.decrypt(row.secret, encryptionContextOf(userId));
  }

  return {
    start: (userId, secret) =>
      transaction(async (trx) => {
        await lockUser(trx, userId);
        const existing = await trx("totp_secrets").where({ user_id: userId }).first("confirmed_at");
        if (existing?.confirmed_at) return false;
        await trx("totp_secrets").where({ user_id: userId }).delete();
        await trx("totp_secrets").insert({
          user_id: userId,
          secret: encryption.encrypt(secret, encryptionContextOf(userId)),
          created_at: Date.now(),
        });
        return true;
      }),

    async findPending(user_id) {
      const row = await knex("totp_secrets").where({ user_id }).whereNull("confirmed_at").first("secret");
      return read(row, user_id);
    },

    async find(user_id) {
      const row = await knex("totp_secrets").where({ user_id }).whereNotNull("confirmed_at").first("secret");
      return read(row, user_id);
    },

    confirm: (secret, step, actor) =>
      transaction(async (trx) => {
        const user_id = actor.id;
        await lockUser(trx, user_id);
        const pending = trx("totp_secrets").where({ user_id }).whereNull("confirmed_at");
        // Another tab may have replaced the secret.
        if (read(await pending.clone().first("secret"), user_id) !== secret) return undefined;
        const now = Date.now();
        await pending.update({ confirmed_at: now, last_step: step, last_used_at: now });
        await recordChange(trx, outbox, actor, user_id, {
          type: "member.second_factor_added",
          method: "totp",
        });
        return ensureRecoveryCodes(trx, user_id);
      }),

    useStep: (userId, step, loginToken) =>
      useCode(database, { userId, loginToken }, async (trx) => {
        const accepted = await trx("totp_secrets")
          .where({ user_id: userId })
          .whereNotNull("confirmed_at")
          // RFC 6238 §5.2: a code must not be accepted twice
          .where("last_step", "<", step)
          .update({ last_step: step, last_used_at: Date.now() });
        return accepted > 0;
      }),

    remove: (actor, keptId) =>
      transaction(async (trx) => {
        const user_id = actor.id;
        await lockUser(trx, user_id);
        const removed = await trx("totp_secrets").where({ user_id }).whereNotNull("confirmed_at").delete();
        if (!removed) return false;
        await endSessionsWithFactor(trx, outbox, actor, "totp", keptId);
        await deleteCodesWithoutFactor(trx, user_id);
        await recordChange(trx, outbox, actor, user_id, {
          type: "member.second_factor_removed",
          method: "totp",
        });
        return true;
      }),
  };
}

/** Binds the ciphertext of a secret to its user. */
export function encryptionContextOf(userId: string): string {
  return `totp ${userId}`;
}
