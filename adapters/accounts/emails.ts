import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { sha256 } from "../crypto/hash.ts";
import { newSecret } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import { lockUser } from "../locks.ts";
import { countMails, queueMail } from "../mail/queue.ts";
import { recordNotice } from "./notices.ts";

const CONFIRMATION = "email_confirmation";
const LIFETIME_MS = 24 * 60 * 60 * 1000;
// More would let a user fill the mailbox of someone else.
const CONFIRMATIONS_PER_USER = 5;
const CONFIRMATIONS_PER_ADDRESS = 5;

/** Stores the email addresses of users. An address is never used to sign in, nor to find or link an account. */
export function createEmailStore({ knex, transaction }: Database, encryption: Encryption) {
  return {
    /** Mails a link that confirms an address and replaces earlier links; false after too many requests in a day. */
    requestChange: (email: string, actor: Actor): Promise<boolean> =>
      transaction(async (trx) => {
        await lockUser(trx, actor.id);
        const byUser = await countMails(trx, { kind: CONFIRMATION, user_id: actor.id });
        const byAddress = await countMails(trx, { kind: CONFIRMATION, recipient: email });
        if (byUser >= CONFIRMATIONS_PER_USER || byAddress >= CONFIRMATIONS_PER_ADDRESS) return false;
        await useUp(trx, actor.id, CONFIRMATION);
        const token = newSecret("");
        const now = Date.now();
        await trx("one_time_links").insert({
          id_hash: sha256(token),
          purpose: CONFIRMATION,
          user_id: actor.id,
          created_by: actor.id,
          email,
          created_at: now,
          expires_at: now + LIFETIME_MS,
        });
        const user = await trx("users").where({ id: actor.id }).first("username");
        const mail = { kind: CONFIRMATION, recipient: email, userId: actor.id } as const;
        await queueMail(trx, { ...mail, data: { username: user?.username } }, { encryption, token });
        return true;
      }),

    async find(token: string, userId: string): Promise<string | undefined> {
      const link = await confirmationOf(knex, token, userId).first("email");
      return link?.email ?? undefined;
    },

    /** Redeems a link of the actor; returns false for an invalid token. Concurrent calls succeed once. */
    confirm: (token: string, actor: Actor): Promise<boolean> =>
      transaction(async (trx) => {
        await lockUser(trx, actor.id);
        const link = await confirmationOf(trx, token, actor.id).first("email");
        const isUsed = await confirmationOf(trx, token, actor.id).update({ used_at: Date.now() });
        if (!link?.email || !isUsed) return false;
        await setEmail(trx, actor, link.email);
        return true;
      }),

    remove: (actor: Actor): Promise<boolean> =>
      transaction(async (trx) => {
        await lockUser(trx, actor.id);
        const user = await trx("users").where({ id: actor.id }).first("email");
        if (!user?.email) return false;
        await useUp(trx, actor.id, CONFIRMATION);
        await setEmail(trx, actor, null);
        return true;
      }),
  };
}

/** Sets or removes the address of a locked user. The notice goes to the address that the user had. */
async function setEmail(trx: Knex.Transaction, { id, address }: Actor, email: string | null): Promise<void> {
  const data = { address, ...(email !== null && { name: email }) };
  await recordNotice(trx, { userId: id, kind: "email_changed", data });
  await trx("users").where({ id }).update({ email });
  // Links that were mailed to the earlier address.
  await useUp(trx, id, "password_reset");
}

function confirmationOf(knex: Knex, token: string, userId: string) {
  return knex("one_time_links")
    .where({ id_hash: sha256(token), purpose: CONFIRMATION, user_id: userId, used_at: null })
    .where("expires_at", ">", Date.now());
}

async function useUp(
  trx: Knex.Transaction,
  user_id: string,
  purpose: "password_reset" | "email_confirmation",
): Promise<void> {
  await trx("one_time_links")
    .where({ user_id, purpose, created_by: user_id, used_at: null })
    .update({ used_at: Date.now() });
}
