import { randomBytes } from "node:crypto";
import type { Knex } from "knex";
import type { Actor } from "../../../resources/access/actor.ts";
import { sha256 } from "../../crypto/ids.ts";
import { ifDuplicate } from "../../database/errors.ts";
import type { Change, Outbox } from "../../events/outbox.ts";
import { lockUser } from "../../locks.ts";
import { rowOfUse, type SingleUse } from "../../oauth/replay.ts";
import { hasFactor } from "../store.ts";
import { recordFactorChange } from "./record-change.ts";

const CODES = 10;
// 120 bits, so an unsalted fast hash suffices (OWASP ASVS 5.0 V6.5.2: at least 112).
const CODE_CHARACTERS = 24;
const GROUP = /.{6}(?!$)/g;
// Crockford's base32 in lower case: 32 characters without i, l, o and u, which are easily misread.
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/** `too_late`: another code has completed the login. */
export type CodeUse = "accepted" | "incorrect" | "too_late";

export function createRecoveryCodeStore(outbox: Outbox) {
  return {
    /** Replaces all codes. Resolves to the new ones, or to undefined if the user has no second factor. */
    replace: (actor: Actor): Promise<string[] | undefined> =>
      outbox.change(actor, async (change) => {
        const { trx } = change;
        const userId = actor.id;
        await lockUser(trx, userId);
        if (!(await hasFactor(trx, userId))) return undefined;
        await trx("recovery_codes").where({ user_id: userId }).delete();
        await recordFactorChange(change, userId, { type: "member.recovery_codes_replaced" });
        return insertCodes(trx, userId);
      }),

    /** Uses a code of the actor for a login. Of concurrent calls with the same code or login token, one succeeds. */
    use: (code: string, actor: Actor, loginToken: SingleUse): Promise<CodeUse> =>
      useCode(outbox, actor, loginToken, async (change) => {
        const unused = { user_id: actor.id, code_hash: hashOf(actor.id, code), used_at: null };
        if (!(await change.trx("recovery_codes").where(unused).update({ used_at: Date.now() }))) return false;
        await recordFactorChange(change, actor.id, { type: "member.recovery_code_used" });
        return true;
      }),
  };
}

/** Uses a code and the login token that it is for, or neither. `use` resolves to false if the code is incorrect. */
export function useCode(
  outbox: Outbox,
  actor: Actor,
  loginToken: SingleUse,
  use: (change: Change) => Promise<boolean>,
): Promise<CodeUse> {
  return outbox
    .change<CodeUse>(actor, async (change) => {
      await lockUser(change.trx, actor.id);
      if (!(await use(change))) return "incorrect";
      await change.trx("tokens").insert(rowOfUse(loginToken));
      return "accepted";
    })
    .catch(ifDuplicate("too_late"));
}

/** Creates codes for a user without codes. Part of the caller's transaction, which has locked the user. */
export async function ensureRecoveryCodes(trx: Knex.Transaction, userId: string): Promise<string[]> {
  const existing = await trx("recovery_codes").where({ user_id: userId }).first("code_hash");
  return existing ? [] : insertCodes(trx, userId);
}

/** Part of the caller's transaction, which has locked the user. */
export async function deleteCodesWithoutFactor(trx: Knex.Transaction, userId: string): Promise<void> {
  if (!(await hasFactor(trx, userId))) await trx("recovery_codes").where({ user_id: userId }).delete();
}

async function insertCodes(trx: Knex.Transaction, user_id: string): Promise<string[]> {
  const codes = Array.from({ length: CODES }, newCode);
  const created_at = Date.now();
  await trx("recovery_codes").insert(
    codes.map((code) => ({ code_hash: hashOf(user_id, code), user_id, created_at })),
  );
  return codes;
}

function newCode(): string {
  const characters = [...randomBytes(CODE_CHARACTERS)].map((byte) => ALPHABET[byte % ALPHABET.length]);
  return characters.join("").replace(GROUP, "$&-");
}

/** Hashes a code as the user may type it: in any case, with or without separators. */
function hashOf(userId: string, code: string): string {
  return sha256(`${userId}\n${code.toLowerCase().replace(/[\s-]/g, "")}`);
}
