import type { Knex } from "knex";
import { sha256 } from "./hash.ts";
import { newSecret, OPERATOR_ID } from "./id.ts";
import { lockOrganization } from "./organizations.ts";
import { lockUser, RESET } from "./reset-revocation.ts";

/** Whose password a link sets, and on whose authority: an owner's in an organization, or the operator's. */
export type ResetLink = { userId: string; createdBy: string; organizationId: string | null };

/** Stores a link in the caller's transaction. Resolves to its token. */
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

/** Finds the link of a token that can be used now. */
export async function findResetLink(knex: Knex, token: string): Promise<ResetLink | undefined> {
  const link = await readOpen(knex, token);
  return link && (await isAuthorized(knex, link)) ? link : undefined;
}

/**
 * Marks the link of a token as used, and the user's other links with it, in the caller's transaction: once, however many
 * try at a time.
 */
export async function takeResetLink(trx: Knex.Transaction, token: string): Promise<ResetLink | undefined> {
  const link = await readOpen(trx, token);
  if (!link || !(await authorize(trx, link))) return undefined;
  const used = { used_at: Date.now() };
  if (!(await open(trx, token).update(used))) return undefined;
  await trx("one_time_links").where({ user_id: link.userId, purpose: RESET, used_at: null }).update(used);
  return link;
}

/**
 * Checks the authority behind a link under locks that last until the caller's transaction ends. Role changes and
 * removals wait for the user's organizations, which are always locked in id order; new memberships wait for the user
 * (`addMember`). A membership that was added before the user was locked has revoked every open link.
 */
export async function authorize(trx: Knex.Transaction, link: ResetLink): Promise<boolean> {
  const organizationIds: string[] = await trx("memberships")
    .where({ user_id: link.userId })
    .orderBy("organization_id")
    .pluck("organization_id");
  for (const id of organizationIds) await lockOrganization(trx, id);
  await lockUser(trx, link.userId);
  return isAuthorized(trx, link);
}

/**
 * Whether the creator of a link may set the user's password, which opens every organization of the user: an owner has
 * to own them all, and the one acted for has to be among them.
 */
async function isAuthorized(knex: Knex, { userId, createdBy, organizationId }: ResetLink): Promise<boolean> {
  if (createdBy === OPERATOR_ID) return true;
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

function readOpen(knex: Knex, token: string): Promise<ResetLink | undefined> {
  return open(knex, token).first({
    userId: "user_id",
    createdBy: "created_by",
    organizationId: "organization_id",
  });
}

function open(knex: Knex, token: string): Knex.QueryBuilder {
  return knex("one_time_links")
    .where({ id_hash: sha256(token), purpose: RESET, used_at: null })
    .whereNotNull("created_by")
    .where("expires_at", ">", Date.now());
}
