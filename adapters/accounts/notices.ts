import type { Knex } from "knex";
import { OPERATOR } from "../../resources/events/types.ts";
import { camelKeys } from "../../resources/http/text.ts";
import { newId } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import type { NoticeKind } from "../database/tables/accounts.ts";
import { countMails, queueMail } from "../mail/queue.ts";

export type { NoticeKind };

/** The circumstances of a notice. Never a secret. */
export type NoticeData = {
  address?: string | undefined;
  /** The browser and operating system, such as “Firefox on Linux”, or the raw `User-Agent`. */
  browser?: string | undefined;
  /** Who did it, if not the user: a user id or `operator`. */
  by?: string | undefined;
  /** What was added or removed, such as the name of a passkey or the issuer of an identity. */
  name?: string | undefined;
};

/** A notice. Times are epoch milliseconds. `by` is a username or `operator`; null for a deleted user. */
export type Notice = {
  id: string;
  kind: NoticeKind;
  data: Omit<NoticeData, "by"> & { by?: string | null };
  createdAt: number;
  dismissedAt: number | null;
};

const LIFETIME_MS = 90 * 24 * 60 * 60 * 1000;
// Per kind, so that an attacker can't push out a password change with many sign-ins from new devices.
const MAX_PER_KIND = 20;
const MAX_TEXT = 200;
const MAILS_PER_KIND_AND_DAY = 5;

/** Records a notice, and queues it as an email if the user has an address. Part of the caller's transaction. */
export async function recordNotice(
  trx: Knex.Transaction,
  { userId, kind, data }: { userId: string; kind: NoticeKind; data: NoticeData },
): Promise<void> {
  const now = Date.now();
  const entries = Object.entries(data).map(([key, text]) => [key, text?.slice(0, MAX_TEXT).toWellFormed()]);
  const shortened: NoticeData = Object.fromEntries(entries);
  await trx("notices").insert({
    id: newId("ntc"),
    user_id: userId,
    kind,
    data: JSON.stringify(shortened),
    created_at: now,
    expires_at: now + LIFETIME_MS,
  });
  const ids = await trx("notices").where({ user_id: userId, kind }).orderBy("id", "desc").pluck("id");
  const surplus = ids.slice(MAX_PER_KIND);
  if (surplus.length > 0) await trx("notices").whereIn("id", surplus).delete();
  await mailNotice(trx, userId, kind, shortened);
}

async function mailNotice(
  trx: Knex.Transaction,
  userId: string,
  kind: NoticeKind,
  { by, ...data }: NoticeData,
): Promise<void> {
  const user = await trx("users").where({ id: userId }).first("email", "username");
  if (!user?.email) return;
  if ((await countMails(trx, { kind, user_id: userId })) >= MAILS_PER_KIND_AND_DAY) return;
  const names = await findUsernames(trx, by === undefined ? [] : [by]);
  const named = { ...data, ...(by !== undefined && { by: names.get(by) ?? null }), username: user.username };
  await queueMail(trx, { kind, recipient: user.email, userId, data: named });
}

export function createNoticeStore({ knex }: Database) {
  return {
    /** Lists the notices of a user, newest first: all of the last 90 days, or only those not dismissed. */
    async list(userId: string, { open = false }: { open?: boolean } = {}): Promise<Notice[]> {
      const query = knex("notices")
        .where({ user_id: userId, ...(open && { dismissed_at: null }) })
        .where("expires_at", ">", Date.now());
      const rows = await query.orderBy("id", "desc");
      const found = rows.map(({ data, ...row }) => ({ ...row, data: JSON.parse(data) as NoticeData }));
      const ids = found.flatMap(({ data }) => data.by ?? []);
      const names = await findUsernames(knex, ids);
      return found.map(({ data: { by, ...data }, ...row }) => ({
        ...camelKeys(row),
        data: by === undefined ? data : { ...data, by: names.get(by) ?? null },
      }));
    },

    /** Dismisses a notice, or all. A dismissed notice remains in the list. Returns false if there was none. */
    async dismiss(userId: string, id?: string): Promise<boolean> {
      const open = { user_id: userId, dismissed_at: null, ...(id !== undefined && { id }) };
      return (await knex("notices").where(open).update({ dismissed_at: Date.now() })) > 0;
    },
  };
}

async function findUsernames(knex: Knex, ids: string[]): Promise<Map<string, string>> {
  const names = new Map([[OPERATOR.id, OPERATOR.id]]);
  const unknown = [...new Set(ids)].filter((id) => !names.has(id));
  if (unknown.length === 0) return names;
  const users = await knex("users").whereIn("id", unknown).select("id", "username");
  for (const { id, username } of users) names.set(id, username);
  return names;
}
