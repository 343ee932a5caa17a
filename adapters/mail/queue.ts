import { randomUUID } from "node:crypto";
import type { Knex } from "knex";
import type { Encryption } from "../crypto/encryption.ts";
import { newId } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import { type MailKind, type MailRow, mails } from "../database/tables/accounts.ts";
import { contextOf } from "../database/tables/columns.ts";

export type { MailKind };

/** A leased email. `data` is what its text names; `token` that of its link. */
export type Mail = {
  id: string;
  lease: string;
  kind: MailKind;
  recipient: string;
  data: Record<string, unknown>;
  token?: string;
  attempts: number;
  createdAt: number;
};

export type NewMail = {
  kind: MailKind;
  /** Null for a password reset: who is addressed is found out when it is sent. */
  recipient: string | null;
  /** The user that the email is for or from, whose emails are limited. */
  userId: string | null;
  data: Record<string, unknown>;
};

// Longer than an attempt takes: after a crash, another process continues.
const LEASE_MS = 60_000;
const DAY_MS = 24 * 60 * 60 * 1000;

export async function queueMail(
  trx: Knex.Transaction,
  { kind, recipient, userId, data }: NewMail,
  secret?: { encryption: Encryption; token: string },
): Promise<void> {
  const id = newId("eml");
  const now = Date.now();
  await trx("mails").insert({
    id,
    user_id: userId,
    recipient,
    kind,
    data: JSON.stringify(data),
    secret: secret ? secret.encryption.encrypt(secret.token, contextOf(mails.columns.secret, id)) : null,
    due_at: now,
    created_at: now,
    expires_at: now + DAY_MS,
  });
}

/** Counts emails of the last day, sent or not. */
export async function countMails(
  trx: Knex.Transaction,
  filter: { kind: MailKind; user_id?: string; recipient?: string },
): Promise<number> {
  const [row] = await trx("mails").where(filter).where("expires_at", ">", Date.now()).count({ count: "*" });
  return Number(row?.count);
}

/** Finds out whom an email without a recipient is for, and creates the token of its link. */
export type ResolveRecipient = (
  trx: Knex.Transaction,
  row: MailRow,
) => Promise<{ userId: string; recipient: string; data: object; token: string } | undefined>;

export type MailQueue = ReturnType<typeof createMailQueue>;

export function createMailQueue(
  { knex, transaction }: Database,
  encryption: Encryption,
  resolveRecipient: ResolveRecipient,
) {
  /** Completes a leased email without a recipient, or deletes it if it is for no one. */
  const resolve = (row: MailRow) =>
    transaction(async (trx) => {
      const found = await resolveRecipient(trx, row);
      if (!found) {
        await trx("mails").where({ id: row.id }).delete();
        return undefined;
      }
      const { userId: user_id, recipient, token } = found;
      const data = JSON.stringify(found.data);
      const secret = encryption.encrypt(token, contextOf(mails.columns.secret, row.id));
      await trx("mails").where({ id: row.id }).update({ user_id, recipient, data, secret });
      return { ...row, user_id, recipient, data, secret };
    });
  const leased = ({ id, lease }: Mail) => knex("mails").where({ id, leased_by: lease });

  return {
    /** Leases due emails for a minute, the oldest first. */
    async lease(max: number): Promise<Mail[]> {
      const now = Date.now();
      const due = knex("mails").where("due_at", "<=", now).where("expires_at", ">", now);
      const ids = await due.orderBy("due_at").limit(max).pluck("id");
      if (ids.length === 0) return [];
      const lease = randomUUID();
      // Of several processes, the first update postpones the due time, so the others no longer match the row.
      await knex("mails")
        .whereIn("id", ids)
        .where("due_at", "<=", now)
        .update({ leased_by: lease, due_at: now + LEASE_MS, attempts: knex.raw("attempts + 1") });
      const rows = await knex("mails").whereIn("id", ids).where({ leased_by: lease }).orderBy("id");
      const mails: Mail[] = [];
      for (const row of rows) {
        const complete = row.recipient === null ? await resolve(row) : row;
        if (complete) mails.push(toMail(complete, lease, encryption));
      }
      return mails;
    },

    /** Marks an email as done: sent, or never to be sent. Only its recipient and kind are kept, for limits. */
    async settle(mail: Mail): Promise<void> {
      await leased(mail).update({ due_at: null, leased_by: null, data: "{}", secret: null });
    },

    async retry(mail: Mail, delayMs: number): Promise<void> {
      await leased(mail).update({ due_at: Date.now() + delayMs, leased_by: null });
    },
  };
}

function toMail(row: MailRow, lease: string, encryption: Encryption): Mail {
  const { id, kind, attempts, secret, created_at: createdAt } = row;
  return {
    id,
    lease,
    kind,
    recipient: row.recipient as string, // resolved above
    data: JSON.parse(row.data),
    ...(secret && { token: encryption.decrypt(secret, contextOf(mails.columns.secret, id)) }),
    attempts,
    createdAt,
  };
}
