import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import type { BeforeCommit, Database } from "../database/index.ts";
import type { OneTimeLinkRow } from "../database/tables/accounts.ts";
import { memberEvent, recordForMember } from "../events/member-events.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { lockOrganizationsOf, lockUser } from "../locks.ts";
import { queueMail, type ResolveRecipient } from "../mail/queue.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { findLink, insertLink, redeemLink, revokeLinks } from "../one-time-links.ts";
import { forgetDevices } from "./known-devices.ts";
import { type NoticeData, type NoticeKind, recordNotice } from "./notices.ts";
import { endAllSessions } from "./sessions.ts";
import { forgetFailuresOf, normalizeUsername } from "./sign-in-failures.ts";

const RESET = "password_reset";
const HOUR_MS = 60 * 60 * 1000;
// Enough to try again. More would let anyone fill the mailbox of a user.
const LINKS_PER_HOUR = 3;

/** The user whose password a link resets, and its creator: an owner, the operator, or the user. */
type ResetLink = Pick<OneTimeLinkRow, "user_id" | "organization_id"> & { created_by: string };

export function createPasswordStore({ knex, transaction }: Database, outbox: Outbox) {
  return {
    /** Sets a new password and ends all other access; false if `currentHash` is no longer the user's. */
    changePassword: (
      { currentHash, newHash }: { currentHash: string | null; newHash: string },
      keptId: string,
      actor: Actor,
    ): Promise<boolean> =>
      outbox.change(actor, async (change) => {
        const { trx } = change;
        const user = trx("users").where({ id: actor.id, password_hash: currentHash });
        if (!(await user.update({ password_hash: newHash }))) return false;
        const notice = { kind: "password_changed", data: { address: actor.address } } as const;
        await endAccess(change, { notice, keptId });
        await revokeLinks(trx, (link) => link.where({ user_id: actor.id }));
        return true;
      }),

    /** Redeems a token and ends all access; returns false for an invalid token. Concurrent calls succeed once. */
    async resetPassword(token: string, passwordHash: string, address?: string): Promise<boolean> {
      const link = await findLink(knex, RESET, token);
      if (!link) return false;
      const { user_id: id, created_by } = link;
      return outbox.change({ id, ...(address && { address }) }, async (change) => {
        const { trx } = change;
        if (!(await isAuthorizedUnderLock(trx, link))) return false;
        if (!(await redeemLink(trx, RESET, token))) return false;
        await revokeLinks(trx, (other) => other.where({ user_id: id, purpose: RESET }));
        await trx("users").where({ id }).update({ password_hash: passwordHash });
        // Users create the links that are mailed to them.
        const data = { ...(created_by !== id && { by: created_by }), address };
        const notice = { kind: "reset_link_used", data } as const;
        await endAccess(change, { notice, event: { reset_link_created_by: created_by } });
        return true;
      });
    },

    /** Creates a password-reset link as the operator. Resolves to its token. */
    createResetToken: (
      userId: string,
      lifetimeMs: number,
      beforeCommit?: BeforeCommit<string>,
    ): Promise<string> =>
      outbox.change(OPERATOR, async (change) => {
        const { trx } = change;
        await recordNotice(trx, { userId, kind: "reset_link_created", data: { by: OPERATOR.id } });
        await recordForMember(change, { userId, type: "member.reset_link_created" });
        const link = { purpose: RESET, user_id: userId, created_by: OPERATOR.id } as const;
        const token = await insertLink(trx, link, lifetimeMs);
        await beforeCommit?.(token);
        return token;
      }),

    /** Creates a reset link as an owner of every organization of the user, both now and when the link is used. */
    createResetTokenAsOwner: (
      userId: string,
      lifetimeMs: number,
      { organizationId, actor }: { organizationId: string; actor: Actor },
    ): Promise<{ token: string } | { refused: "not_owner" | "no_password" }> =>
      outbox.change(actor, async ({ trx, record }) => {
        const link = { user_id: userId, created_by: actor.id, organization_id: organizationId };
        if (!(await isAuthorizedUnderLock(trx, link))) return { refused: "not_owner" };
        const user = await trx("users").where({ id: userId }).first("password_hash");
        if (!user?.password_hash) return { refused: "no_password" };
        const token = await insertLink(trx, { purpose: RESET, ...link }, lifetimeMs);
        await record(memberEvent(organizationId, { userId, type: "member.reset_link_created" }));
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
  change: Change,
  {
    notice,
    event = {},
    keptId = "",
  }: { notice: { kind: NoticeKind; data: NoticeData }; event?: object; keptId?: string },
): Promise<void> {
  const { trx, actor } = change;
  const userId = actor.id;
  await recordForMember(change, { userId, type: "member.password_changed", ...event });
  await recordNotice(trx, { userId, ...notice });
  await endAllSessions(trx, userId, keptId);
  await revokeGrants(change, { user_id: userId }, keptId);
  await forgetDevices(trx, userId);
  await forgetFailuresOf(trx, userId);
}

/** Creates the link; undefined for an unknown user, one without password or address, and after too many links. */
export const resolveResetRequest: ResolveRecipient = async (trx, { data }) => {
  const { usernameKey } = JSON.parse(data) as { usernameKey: string };
  const found = await trx("users").where({ username_key: usernameKey }).first("id");
  if (!found) return undefined;
  const userId = found.id;
  const user = await lockUser(trx, userId);
  if (!user?.email || !user.password_hash || user.disabled_at !== null) return undefined;
  const recent = await trx("one_time_links")
    .where({ user_id: userId, created_by: userId, purpose: RESET })
    .where("created_at", ">", Date.now() - HOUR_MS)
    .pluck("id_hash");
  if (recent.length >= LINKS_PER_HOUR) return undefined;
  const token = await insertLink(trx, { purpose: RESET, user_id: userId, created_by: userId }, HOUR_MS);
  return { userId, recipient: user.email, data: { username: user.username }, token };
};

/** Returns the user whose password a token may reset now. */
export async function findResetUser(knex: Knex, token: string): Promise<string | undefined> {
  const link = await findLink(knex, RESET, token);
  return link && (await isAuthorized(knex, link)) ? link.user_id : undefined;
}

/** Role changes wait for the locked organizations, and new memberships for the user, until the commit. */
export async function isAuthorizedUnderLock(trx: Knex.Transaction, link: ResetLink): Promise<boolean> {
  await lockOrganizationsOf(trx, link.user_id);
  await lockUser(trx, link.user_id);
  return isAuthorized(trx, link);
}

/** The password gives access to every organization of the user, so an owner must own all of them. */
async function isAuthorized(knex: Knex, link: ResetLink): Promise<boolean> {
  const { user_id, created_by, organization_id } = link;
  const isMailed = created_by === user_id && organization_id === null;
  if (created_by === OPERATOR.id || isMailed) return true;
  const memberships: { organizationId: string; ownerId: string | null }[] = await knex("memberships as m")
    .leftJoin("memberships as o", (join) =>
      join
        .on("o.organization_id", "m.organization_id")
        .andOnVal("o.user_id", created_by)
        .andOnVal("o.role", "owner"),
    )
    .leftJoin("users as u", (join) => join.on("u.id", "o.user_id").andOnNull("u.disabled_at"))
    .where("m.user_id", user_id)
    .select({ organizationId: "m.organization_id", ownerId: "u.id" });
  return (
    memberships.some(({ organizationId }) => organizationId === organization_id) &&
    memberships.every(({ ownerId }) => ownerId !== null)
  );
}
