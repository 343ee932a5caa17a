import type { Knex } from "knex";
import { sha256 } from "../crypto/hash.ts";
import { newSecret, OPERATOR_ID } from "../crypto/ids.ts";
import { lockUser, RESET } from "../organizations/reset-revocation.ts";
import { lockOrganization } from "../organizations/store.ts";

/**
 * The user whose password a link resets, and its creator: an owner acting for an organization, the operator, or the user,
 * to whom the link was mailed.
 */
export type ResetLink = { userId: string; createdBy: string; organizationId: string | null };

/** Stores a link and returns its token. Part of the caller's transaction. */
export async function insertResetLink(
  trx: Knex.Transaction,
  { userId, createdBy, organizationId }: ResetLink,
  lifetimeMs: number,
): Promise<string> {
  const token = newSecret("");
  const now = Date.now();
  await trx("one_time_links").insert({
    id_hash: sha256(token),
    purpose: RESET,
    user_id: userId,
    created_by: createdBy,
    organization_id: organizationId,
    created_at: now,
    expires_at: now + lifetimeMs,
  });
  return token;
}

/** Finds the link of a token if it can be used now. */
export async function findResetLink(knex: Knex, token: string): Promise<ResetLink | undefined> {
  const link = await findUnused(knex, token);
  return link && (await isAuthorized(knex, link)) ? link : undefined;
}

/**
 * Redeems the link of a token and marks the user's other links as used, too. Concurrent attempts succeed once. Part of
 * the caller's transaction.
 */
export async function redeemResetLink(trx: Knex.Transaction, token: string): Promise<ResetLink | undefined> {
  const link = await findUnused(trx, token);
  if (!link || !(await isAuthorizedUnderLock(trx, link))) return undefined;
  const used = { used_at: Date.now() };
  if (!(await unused(trx, token).update(used))) return undefined;
  await trx("one_time_links").where({ user_id: link.userId, purpose: RESET, used_at: null }).update(used);
  return link;
}

/**
 * Returns whether the creator of a link is authorized, under locks that last until the caller's transaction ends. Role
 * changes and removals wait for the user's organizations, which are always locked in id order. New memberships wait for
 * the user (`addMember`), and one added before the user was locked has revoked every unused link.
 */
export async function isAuthorizedUnderLock(trx: Knex.Transaction, link: ResetLink): Promise<boolean> {
  const organizationIds: string[] = await trx("memberships")
    .where({ user_id: link.userId })
    .orderBy("organization_id")
    .pluck("organization_id");
  for (const id of organizationIds) await lockOrganization(trx, id);
  await lockUser(trx, link.userId);
  return isAuthorized(trx, link);
}

/**
 * Returns whether the creator of a link may reset the user's password. Since the password gives access to every
 * organization of the user, an owner must own all of them, including the one acted for.
 */
async function isAuthorized(knex: Knex, { userId, createdBy, organizationId }: ResetLink): Promise<boolean> {
  if (createdBy === OPERATOR_ID || isMailed({ userId, createdBy, organizationId })) return true;
  const memberships: { organizationId: string; ownerId: string | null }[] = await knex("memberships as m")
    .leftJoin("memberships as o", (join) =>
      join
        .on("o.organization_id", "m.organization_id")
        .andOnVal("o.user_id", createdBy)
        .andOnVal("o.role", "owner"),
    )
    .leftJoin("users as u", (join) => join.on("u.id", "o.user_id").andOnNull("u.disabled_at"))
    .where("m.user_id", userId)
    .select({ organizationId: "m.organization_id", ownerId: "u.id" });
  return (
    memberships.some((one) => one.organizationId === organizationId) &&
    memberships.every(({ ownerId }) => ownerId !== null)
  );
}

/** Returns whether a link was mailed to its user. */
function isMailed({ userId, createdBy, organizationId }: ResetLink): boolean {
  return createdBy === userId && organizationId === null;
}

function findUnused(knex: Knex, token: string): Promise<ResetLink | undefined> {
  return unused(knex, token).first({
    userId: "user_id",
    createdBy: "created_by",
    organizationId: "organization_id",
  });
}

function unused(knex: Knex, token: string): Knex.QueryBuilder {
  return knex("one_time_links")
    .where({ id_hash: sha256(token), purpose: RESET, used_at: null })
    .whereNotNull("created_by")
    .where("expires_at", ">", Date.now());
}
