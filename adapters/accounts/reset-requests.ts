import type { Knex } from "knex";
import type { MailRow } from "../database/account-tables.ts";
import { lockUser, RESET } from "../organizations/reset-revocation.ts";
import { insertResetLink } from "./reset-links.ts";

const HOUR_MS = 60 * 60 * 1000;
// Enough to try again. More would let anyone fill the mailbox of a user.
const LINKS_PER_HOUR = 3;

/** Whom a password reset is mailed to, and the token of its link. */
export type ResetRecipient = { userId: string; recipient: string; data: { username: string }; token: string };

/**
 * Finds out whom the request for a password reset is for, and creates the link. Resolves to undefined if there is no such
 * user with a password and an email address, or too many links. The request itself does the same work for every name.
 */
export async function resolveResetRequest(
  trx: Knex.Transaction,
  { data }: Pick<MailRow, "data">,
): Promise<ResetRecipient | undefined> {
  const { usernameKey } = JSON.parse(data) as { usernameKey: string };
  const user = await trx("users").where({ username_key: usernameKey }).first("id");
  if (!user) return undefined;
  await lockUser(trx, user.id);
  return createLink(trx, user.id);
}

/** Creates a link for a locked user who may have one. */
async function createLink(trx: Knex.Transaction, userId: string): Promise<ResetRecipient | undefined> {
  const user = await trx("users").where({ id: userId }).first();
  if (!user?.email || !user.password_hash || user.disabled_at !== null) return undefined;
  const recent = await trx("one_time_links")
    .where({ user_id: userId, created_by: userId, purpose: RESET })
    .where("created_at", ">", Date.now() - HOUR_MS)
    .pluck("id_hash");
  if (recent.length >= LINKS_PER_HOUR) return undefined;
  const token = await insertResetLink(trx, { userId, createdBy: userId, organizationId: null }, HOUR_MS);
  return { userId, recipient: user.email, data: { username: user.username }, token };
}
