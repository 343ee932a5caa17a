import type { Actor } from "../../../resources/access/actor.ts";
import type { Encryption } from "../../crypto/encryption.ts";
import type { Database } from "../../database/index.ts";
import type { Outbox } from "../../events/outbox.ts";
import { revokeGrants } from "../../oauth/grants.ts";
import { lockUser } from "../../organizations/reset-revocation.ts";
import { endAllSessions, firstParty } from "../sessions.ts";
import { forgetFactorFailures } from "../sign-in-failures.ts";
import { createPasskeyStore, type Passkey, type PasskeyStore } from "./passkeys.ts";
import { recordChange } from "./record-change.ts";
import { createRecoveryCodeStore, hasFactor, type RecoveryCodeStore } from "./recovery-codes.ts";
import { createTotpStore, type TotpStore } from "./totp.ts";

/** The second factors of a user. Times are epoch milliseconds. */
export type SecondFactors = {
  totp: { createdAt: number; lastUsedAt: number | null } | undefined;
  passkeys: Passkey[];
  /** The number of unused recovery codes. */
  recoveryCodes: number;
};

/** Stores second factors. A user has one with a passkey or a confirmed authenticator app. */
export type SecondFactorStore = {
  totp: TotpStore;
  recoveryCodes: RecoveryCodeStore;
  passkeys: PasskeyStore;
  find(userId: string): Promise<SecondFactors>;
  isEnabled(userId: string): Promise<boolean>;
  /** Removes all second factors of a user, and ends the user's sessions. */
  reset(userId: string, actor: Actor): Promise<void>;
};

/** Creates the second-factor store of a database. */
export function createSecondFactorStore(
  database: Database,
  outbox: Outbox,
  encryption: Encryption,
): SecondFactorStore {
  const { knex, transaction } = database;
  const passkeys = createPasskeyStore(database, outbox);
  const methods: Pick<SecondFactorStore, "find" | "isEnabled" | "reset"> = {
    async find(userId) {
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

    isEnabled: (userId) => hasFactor(knex, userId),

    reset: (userId, actor) =>
      transaction(async (trx) => {
        await lockUser(trx, userId);
        for (const table of FACTOR_TABLES) await trx(table).where({ user_id: userId }).delete();
        await forgetFactorFailures(trx, userId);
        await endAllSessions(trx, userId);
        await revokeGrants(trx, outbox, actor, firstParty(userId));
        await recordChange(trx, outbox, actor, userId, { type: "member.second_factors_reset" });
      }),
  };
  return {
    ...methods,
    totp: createTotpStore(database, outbox, encryption),
    recoveryCodes: createRecoveryCodeStore(database, outbox),
    passkeys,
  };
}

/** The tables with the second factors of users. */
export const FACTOR_TABLES = ["totp_secrets", "recovery_codes", "passkeys"] as const;
