import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { sha256 } from "../crypto/hash.ts";
import { newSecret } from "../crypto/ids.ts";
import type { BeforeCommit, Database } from "../database/index.ts";
import { memberEvent, recordForMember } from "../events/member-events.ts";
import type { Outbox } from "../events/outbox.ts";
import { lockOrganizationsOf, lockUser } from "../locks.ts";
import { queueMail, type ResolveRecipient } from "../mail/queue.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { forgetDevices } from "./known-devices.ts";
import { type NoticeData, type NoticeKind, recordNotice } from "./notices.ts";
import { endAllSessions } from "./sessions.ts";
import { forgetFailuresOf, normalizeUsername } from "./sign-in-failures.ts";

const RESET = "password_reset";
const HOUR_MS = 60 * 60 * 1000;
// Enough to try again. More would let anyone fill the mailbox of a user.
const LINKS_PER_HOUR = 3;

type ResetRefusal = "not_owner" | "no_password";

/** The user whose password a link resets, and its creator: an owner, the operator, or the user. */
type ResetLink = { userId: string; createdBy: string; organizationId: string | null };

export function createPasswordStore({ transaction }: Database, outbox: Outbox) {
  return {
    /** Sets a new password and ends all other access; false if `currentHash` is no longer the user's. */
    changePassword: (
      { currentHash, newHash }: { currentHash: string | null; newHash: string },
      keptId: string,
      actor: Actor,
    ): Promise<boolean> =>
      transaction(async (trx) => {
        const user_id = actor.id;
        const user = trx("users").where({ id: user_id, password_hash: currentHash });
        if (!(await user.update({ password_hash: newHash }))) return false;
        const notice = { kind: "password_changed", data: { address: actor.address } } as const;
        await endAccess(trx, outbox, actor, { notice, keptId });
        await trx("one_time_links").where({ user_id, used_at: null }).update({ used_at: Date.now() });
        return true;
      }),

    /** Redeems a token and ends all access; returns false for an invalid token. Concurrent calls succeed once. */
    resetPassword: (token: string, passwordHash: string, address?: string): Promise<boolean> =>
      transaction(async (trx) => {
        const link = await redeemResetLink(trx, token);
        if (!link) return false;
        const { userId: id, createdBy } = link;
        await trx("users").where({ id }).update({ password_hash: passwordHash });
        // Users create the links that are mailed to them.
        const data = { ...(createdBy !== id && { by: createdBy }), address };
        const notice = { kind: "reset_link_used", data } as const;
        const event = { reset_link_created_by: createdBy };
        await endAccess(trx, outbox, { id, ...(address && { address }) }, { notice, event });
        return true;
      }),

    /** Creates a password-reset link as the operator. Resolves to its token. */
    createResetToken: (
      userId: string,
      lifetimeMs: number,
      beforeCommit?: BeforeCommit<string>,
    ): Promise<string> =>
      transaction(async (trx) => {
        await recordNotice(trx, { userId, kind: "reset_link_created", data: { by: OPERATOR.id } });
        await recordForMember(trx, outbox, OPERATOR, { userId, type: "member.reset_link_created" });
        const link = { userId, createdBy: OPERATOR.id, organizationId: null };
        const token = await insertResetLink(trx, link, lifetimeMs);
        await beforeCommit?.(token);
        return token;
      }),

    /** Creates a reset link as an owner of every organization of the user, both now and when the link is used. */
    createResetTokenAsOwner: (
      userId: string,
      lifetimeMs: number,
      { organizationId, actor }: { organizationId: string; actor: Actor },
    ): Promise<{ token: string } | { refused: ResetRefusal }> =>
      transaction(async (trx) => {
        const link = { userId, createdBy: actor.id, organizationId };
        if (!(await isAuthorizedUnderLock(trx, link))) return { refused: "not_owner" };
        const user = await trx("users").where({ id: userId }).first("password_hash");
        if (!user?.password_hash) return { refused: "no_password" };
        const token = await insertResetLink(trx, link, lifetimeMs);
        const event = { userId, type: "member.reset_link_created" } as const;
        await outbox.record(trx, actor, memberEvent(organizationId, event));
        const data = { by: actor.id, address: actor.address };
        await recordNotice(trx, { userId, kind: "reset_link_created", data });
        return { token };
      }),

    /** Queues an email with a reset link. Does the same for every name, so the time reveals nothing. */
    requestReset: (username: string): Promise<void> =>
      transaction((trx) => {
        const data = { usernameKey: normalizeUsername(username) };
        return queueMail(trx, { kind: "password_reset", recipient: null, userId: null, data });
      }),
  };
}

/** OAuth 2.1 §4.3.3: ends what an attacker who knew the old password may hold, except one session or grant. */
async function endAccess(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  {
    notice,
    event = {},
    keptId = "",
  }: { notice: { kind: NoticeKind; data: NoticeData }; event?: object; keptId?: string },
): Promise<void> {
  const userId = actor.id;
  await recordForMember(trx, outbox, actor, { userId, type: "member.password_changed", ...event });
  await recordNotice(trx, { userId, ...notice });
  await endAllSessions(trx, userId, keptId);
  await revokeGrants(trx, outbox, actor, { user_id: userId }, keptId);
  await forgetDevices(trx, userId);
  await forgetFailuresOf(trx, userId);
}

/** Creates the link; undefined for an unknown user, one without password or address, and after too many links. */
export const resolveResetRequest: ResolveRecipient = async (trx, { data }) => {
  const { usernameKey } = JSON.parse(data) as { usernameKey: string };
  const found = await trx("users").where({ username_key: usernameKey }).first("id");
  if (!found) return undefined;
  const userId = found.id;
  await lockUser(trx, userId);
  const user = await trx("users").where({ id: userId }).first();
  if (!user?.email || !user.password_hash || user.disabled_at !== null) return undefined;
  const recent = await trx("one_time_links")
    .where({ user_id: userId, created_by: userId, purpose: RESET })
    .where("created_at", ">", Date.now() - HOUR_MS)
    .pluck("id_hash");
  if (recent.length >= LINKS_PER_HOUR) return undefined;
  const token = await insertResetLink(trx, { userId, createdBy: userId, organizationId: null }, HOUR_MS);
  return { userId, recipient: user.email, data: { username: user.username }, token };
};

async function insertResetLink(
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

export async function findResetLink(knex: Knex, token: string): Promise<ResetLink | undefined> {
  const link = await findUnused(knex, token);
  return link && (await isAuthorized(knex, link)) ? link : undefined;
}

/** Redeems the link of a token, and marks the user's other links as used. Concurrent attempts succeed once. */
async function redeemResetLink(trx: Knex.Transaction, token: string): Promise<ResetLink | undefined> {
  const link = await findUnused(trx, token);
  if (!link || !(await isAuthorizedUnderLock(trx, link))) return undefined;
  const used = { used_at: Date.now() };
  if (!(await unused(trx, token).update(used))) return undefined;
  await trx("one_time_links").where({ user_id: link.userId, purpose: RESET, used_at: null }).update(used);
  return link;
}

/** Role changes wait for the locked organizations, and new memberships for the user, until the commit. */
export async function isAuthorizedUnderLock(trx: Knex.Transaction, link: ResetLink): Promise<boolean> {
  await lockOrganizationsOf(trx, link.userId);
  await lockUser(trx, link.userId);
  return isAuthorized(trx, link);
}

/** The password gives access to every organization of the user, so an owner must own all of them. */
async function isAuthorized(knex: Knex, { userId, createdBy, organizationId }: ResetLink): Promise<boolean> {
  const isMailed = createdBy === userId && organizationId === null;
  if (createdBy === OPERATOR.id || isMailed) return true;
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
