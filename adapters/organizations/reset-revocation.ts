import type { Knex } from "knex";
import { OPERATOR_ID } from "../crypto/ids.ts";

/** The purpose of one-time links that reset a password. */
export const RESET = "password_reset";

/**
 * Revokes the unused reset links that owners created for these users, because the users' memberships change. Links
 * created by the operator don't depend on memberships. Part of the caller's transaction.
 */
export async function revokeResetLinksFor(trx: Knex.Transaction, userIds: string[]): Promise<void> {
  const links = unused(trx).whereIn("user_id", userIds).whereNot("created_by", OPERATOR_ID);
  await links.update({ used_at: Date.now() });
}

/**
 * Revokes the unused reset links that a former owner of an organization created for its members. Part of the caller's
 * transaction, which has locked the organization.
 */
export async function revokeResetLinksBy(
  trx: Knex.Transaction,
  ownerId: string,
  organizationId: string,
): Promise<void> {
  const userIds = await trx("memberships").where({ organization_id: organizationId }).pluck("user_id");
  await unused(trx)
    .where({ created_by: ownerId })
    .whereIn("user_id", userIds)
    .update({ used_at: Date.now() });
}

/** Locks a user until the caller's transaction ends. Callers lock organizations first. */
export async function lockUser(trx: Knex.Transaction, id: string): Promise<void> {
  await trx("users").where({ id }).forUpdate().first("id");
}

function unused(trx: Knex.Transaction) {
  return trx("one_time_links").where({ purpose: RESET, used_at: null });
}
