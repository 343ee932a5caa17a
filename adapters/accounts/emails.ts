import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Encryption } from "../crypto/encryption.ts";
import type { Database } from "../database/index.ts";
import type { OneTimeLinkRow } from "../database/tables/accounts.ts";
import { lockUser } from "../locks.ts";
import { countMails, queueMail } from "../mail/queue.ts";
import { findLink, insertLink, redeemLink, revokeLinks } from "../one-time-links.ts";
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
        const user = await lockUser(trx, actor.id);
        const byUser = await countMails(trx, { kind: CONFIRMATION, user_id: actor.id });
        const byAddress = await countMails(trx, { kind: CONFIRMATION, recipient: email });
        if (byUser >= CONFIRMATIONS_PER_USER || byAddress >= CONFIRMATIONS_PER_ADDRESS) return false;
        await revokeOwnLinks(trx, actor.id, CONFIRMATION);
        const link = { purpose: CONFIRMATION, user_id: actor.id, created_by: actor.id, email } as const;
        const token = await insertLink(trx, link, LIFETIME_MS);
        const mail = { kind: CONFIRMATION, recipient: email, userId: actor.id } as const;
        await queueMail(trx, { ...mail, data: { username: user?.username } }, { encryption, token });
        return true;
      }),

    async find(token: string, userId: string): Promise<string | undefined> {
      const link = await findLink(knex, CONFIRMATION, token);
      return link?.user_id === userId ? (link.email ?? undefined) : undefined;
    },

    /** Redeems a link of the actor; returns false for an invalid token. Concurrent calls succeed once. */
    confirm: (token: string, actor: Actor): Promise<boolean> =>
      transaction(async (trx) => {
        await lockUser(trx, actor.id);
        const link = await findLink(trx, CONFIRMATION, token);
        if (link?.user_id !== actor.id || !(await redeemLink(trx, CONFIRMATION, token))) return false;
        await setEmail(trx, actor, link.email);
        return true;
      }),

    remove: (actor: Actor): Promise<boolean> =>
      transaction(async (trx) => {
        const user = await lockUser(trx, actor.id);
        if (!user?.email) return false;
        await revokeOwnLinks(trx, actor.id, CONFIRMATION);
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
  await revokeOwnLinks(trx, id, "password_reset");
}

function revokeOwnLinks(
  trx: Knex.Transaction,
  user_id: string,
  purpose: OneTimeLinkRow["purpose"],
): Promise<void> {
  return revokeLinks(trx, (link) => link.where({ user_id, purpose, created_by: user_id }));
}
