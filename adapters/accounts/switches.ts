import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import { recordForMember } from "../events/member-events.ts";
import type { Outbox } from "../events/outbox.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { revokeInvitations } from "../organizations/invitations.ts";
import { lockUser } from "../organizations/reset-revocation.ts";
import { forgetDevices } from "./known-devices.ts";
import { lockOrganizationsOf } from "./lock-organizations.ts";
import { isAuthorizedUnderLock } from "./reset-links.ts";
import { endAllSessions, FIRST_PARTY } from "./sessions.ts";

/** When an account was disabled, in epoch milliseconds, and why. */
export type DisabledAccount = { at: number; reason: string | null };

/** What a sign-out ended: the number of browser sessions, and of grants of programs and apps. */
export type SignedOut = { sessions: number; grants: number };

/** Disables accounts and ends the sessions of users. */
export type AccountSwitchStore = {
  /** Returns when and why an account was disabled; undefined if it is enabled. */
  findDisabled(userId: string): Promise<DisabledAccount | undefined>;
  /**
   * Disables an account from the next request on: ends its sessions, forgets its devices, and revokes its grants, reset links
   * and the invitations that the user created. Without a reason, an existing one is kept. Resolves to undefined for an unknown user.
   */
  disable(userId: string, reason: string | null, actor: Actor): Promise<DisabledAccount | undefined>;
  /** Lets the user sign in again. What was ended remains ended. Returns false for an unknown user. */
  enable(userId: string, actor: Actor): Promise<boolean>;
  /** Ends a user's sessions; with `apps`, also revokes the apps that the user authorized. */
  signOut(userId: string, options: { apps: boolean }, actor: Actor): Promise<SignedOut>;
  /**
   * Revokes the apps that a member authorized for an organization. If the actor owns every organization of the member, it
   * also ends the member's sessions, which give access to all of them. Resolves to undefined if there is no such member.
   */
  signOutMember(
    member: { organizationId: string; userId: string },
    actor: Actor,
  ): Promise<(SignedOut & { hasEndedSessions: boolean }) | undefined>;
};

/** Creates the store of a database. */
export function createAccountSwitchStore(
  { knex, transaction }: Database,
  outbox: Outbox,
): AccountSwitchStore {
  return {
    findDisabled: (userId) => findDisabled(knex, userId),

    disable: (userId, reason, actor) =>
      transaction(async (trx) => {
        const organizations = await lockOrganizationsOf(trx, userId);
        await lockUser(trx, userId);
        const before = await findDisabled(trx, userId);
        const after = { at: before?.at ?? Date.now(), reason: reason ?? before?.reason ?? null };
        const user = trx("users").where({ id: userId });
        if (!(await user.update({ disabled_at: after.at, disabled_reason: after.reason }))) return undefined;
        await revokeGrants(trx, outbox, actor, { user_id: userId });
        await endAllSessions(trx, userId);
        await forgetDevices(trx, userId);
        await trx("one_time_links").where({ user_id: userId, used_at: null }).update({ used_at: Date.now() });
        for (const { id } of organizations) {
          await revokeInvitations(trx, outbox, actor, { organization_id: id, created_by: userId });
        }
        if (before && before.reason === after.reason) return after;
        const { reason: given } = after;
        await recordForMember(trx, outbox, actor, { userId, type: "member.disabled", reason: given });
        return after;
      }),

    enable: (userId, actor) =>
      transaction(async (trx) => {
        await lockOrganizationsOf(trx, userId);
        const user = () => trx("users").where({ id: userId });
        const enabled = { disabled_at: null, disabled_reason: null };
        if (!(await user().whereNotNull("disabled_at").update(enabled)))
          return (await user().first("id")) !== undefined;
        await recordForMember(trx, outbox, actor, { userId, type: "member.enabled" });
        return true;
      }),

    signOut: (userId, { apps }, actor) =>
      transaction(async (trx) => {
        await lockOrganizationsOf(trx, userId);
        await lockUser(trx, userId);
        const filter = { user_id: userId, ...(!apps && { client_id: FIRST_PARTY }) };
        const grants = await revokeGrants(trx, outbox, actor, filter);
        const sessions = await endAllSessions(trx, userId);
        await recordForMember(trx, outbox, actor, {
          userId,
          type: "member.signed_out",
          sessions: true,
          apps,
        });
        return { sessions, grants };
      }),

    async signOutMember({ organizationId, userId }, actor) {
      const membership = { user_id: userId, organization_id: organizationId };
      const isMember = async (q: Knex) =>
        (await q("memberships").where(membership).first("role")) !== undefined;
      // Before the locks, which concern every organization of the user.
      if (!(await isMember(knex))) return undefined;
      return transaction(async (trx) => {
        const link = { userId, createdBy: actor.id, organizationId };
        const hasEndedSessions = await isAuthorizedUnderLock(trx, link);
        if (!(await isMember(trx))) return undefined;
        let grants = await revokeGrants(trx, outbox, actor, membership);
        let sessions = 0;
        if (hasEndedSessions) {
          grants += await revokeGrants(trx, outbox, actor, { user_id: userId, client_id: FIRST_PARTY });
          sessions = await endAllSessions(trx, userId);
        }
        await outbox.record(trx, actor, {
          organizationId,
          type: "member.signed_out",
          subject: userId,
          data: { user_id: userId, sessions: hasEndedSessions, apps: true },
        });
        return { sessions, grants, hasEndedSessions };
      });
    },
  };
}

async function findDisabled(q: Knex, id: string): Promise<DisabledAccount | undefined> {
  const row = await q("users").where({ id }).first("disabled_at", "disabled_reason");
  if (!row || row.disabled_at === null) return undefined;
  return { at: row.disabled_at, reason: row.disabled_reason };
}
