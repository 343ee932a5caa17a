import type { Actor } from "../../../resources/access/actor.ts";
import type { Encryption } from "../../crypto/encryption.ts";
import type { Database } from "../../database/index.ts";
import type { Outbox } from "../../events/outbox.ts";
import { lockUser } from "../../locks.ts";
import { revokeGrants } from "../../oauth/grants.ts";
import { endAllSessions, firstParty } from "../sessions.ts";
import { factorKey, forgetFailures } from "../sign-in-failures.ts";
import { hasFactor } from "../store.ts";
import { createPasskeyStore } from "./passkeys.ts";
import { recordFactorChange } from "./record-change.ts";
import { createRecoveryCodeStore } from "./recovery-codes.ts";
import { createTotpStore } from "./totp.ts";

/** Stores second factors. A user has one with a passkey or a confirmed authenticator app. */
export function createSecondFactorStore(database: Database, outbox: Outbox, encryption: Encryption) {
  const { knex } = database;
  const passkeys = createPasskeyStore(database, outbox);
  return {
    totp: createTotpStore(database, outbox, encryption),
    recoveryCodes: createRecoveryCodeStore(outbox),
    passkeys,

    /** Returns the second factors of a user, and how many recovery codes are left. Times are epoch milliseconds. */
    async find(userId: string) {
      const [totp, keys, unused] = await Promise.all([
        knex("totp_secrets").where({ user_id: userId }).whereNotNull("confirmed_at").first(),
        passkeys.list(userId),
        knex("recovery_codes").where({ user_id: userId, used_at: null }).pluck("code_hash"),
      ]);
      return {
        totp: totp && { createdAt: totp.confirmed_at as number, lastUsedAt: totp.last_used_at },
        passkeys: keys,
        recoveryCodes: unused.length,
      };
    },

    isEnabled: (userId: string) => hasFactor(knex, userId),

    /** Removes all second factors of a user, and ends the user's sessions. */
    reset: (userId: string, actor: Actor): Promise<void> =>
      outbox.change(actor, async (change) => {
        const { trx } = change;
        await lockUser(trx, userId);
        for (const table of FACTOR_TABLES) await trx(table).where({ user_id: userId }).delete();
        await forgetFailures(trx, factorKey(userId));
        await endAllSessions(trx, userId);
        await revokeGrants(change, firstParty(userId));
        await recordFactorChange(change, userId, { type: "member.second_factors_reset" });
      }),
  };
}

export const FACTOR_TABLES = ["totp_secrets", "recovery_codes", "passkeys"] as const;
