import type { Knex } from "knex";
import { OPERATOR_ID } from "./id.ts";

/** The purpose of one-time links that set a new password. */
export const RESET = "password_reset";

/**
 * Revokes the open reset links that owners created for these users, because their memberships change. The operator's
 * links depend on no membership. Part of the caller's transaction.
 */
export async function revokeResetLinksFor(trx: Knex.Transaction, userIds: string[]): Promise<void> {
  const links = open(trx).whereIn("user_id", userIds).whereNot("created_by", OPERATOR_ID);
  await links.update({ used_at: Date.now() });
}

/**
 * Revokes the open reset links that a former owner of an organization created for its members. Part of the caller's
 * transaction, which has locked the organization.
 */
export async function revokeResetLinksBy(
  trx: Knex.Transaction,
  ownerId: string,
  organizationId: string,
): Promise<void> {
  const userIds = await trx("memberships").where({ organization_id: organizationId }).pluck("user_id");
  await open(trx).where({ created_by: ownerId }).whereIn("user_id", userIds).update({ used_at: Date.now() });
}

/** Locks a user until the caller's transaction ends. Organizations are locked first. */
export async function lockUser(trx: Knex.Transaction, id: string): Promise<void> {
  await trx("users").where({ id }).forUpdate().first("id");
}

function open(trx: Knex.Transaction): Knex.QueryBuilder {
  return trx("one_time_links").where({ purpose: RESET, used_at: null });
}
