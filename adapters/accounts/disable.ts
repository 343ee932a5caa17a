import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { UserRow } from "../database/tables/accounts.ts";
import { memberEvent, recordForMember } from "../events/member-events.ts";
import type { Outbox } from "../events/outbox.ts";
import { lockOrganizationsOf, lockUser } from "../locks.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { revokeLinks } from "../one-time-links.ts";
import { revokeInvitations } from "../organizations/invitations.ts";
import { forgetDevices } from "./known-devices.ts";
import { isAuthorizedUnderLock } from "./passwords.ts";
import { endAllSessions, firstParty } from "./sessions.ts";

/** When an account was disabled, in epoch milliseconds, and why. */
export type DisabledAccount = { at: number; reason: string | null };

export type SignedOut = { sessions: number; grants: number };

export function createAccountDisablingStore({ knex }: Database, outbox: Outbox) {
  return {
    async findDisabled(id: string): Promise<DisabledAccount | undefined> {
      const user = await knex("users").where({ id }).first();
      return user && disabledOf(user);
    },

    /** Takes effect with the next request, and ends all access. Without a reason, an existing one is kept. */
    disable: (userId: string, reason: string | null, actor: Actor): Promise<DisabledAccount | undefined> =>
      outbox.change(actor, async (change) => {
        const { trx } = change;
        const organizations = await lockOrganizationsOf(trx, userId);
        const user = await lockUser(trx, userId);
        if (!user) return undefined;
        const before = disabledOf(user);
        const after = { at: before?.at ?? Date.now(), reason: reason ?? before?.reason ?? null };
        const columns = { disabled_at: after.at, disabled_reason: after.reason };
        await trx("users").where({ id: userId }).update(columns);
        await revokeGrants(change, { user_id: userId });
        await endAllSessions(trx, userId);
        await forgetDevices(trx, userId);
        await revokeLinks(trx, (link) => link.where({ user_id: userId }));
        for (const { id } of organizations)
          await revokeInvitations(change, { organization_id: id, created_by: userId });
        if (before && before.reason === after.reason) return after;
        await recordForMember(change, { userId, type: "member.disabled", reason: after.reason });
        return after;
      }),

    /** Lets the user sign in again. What was ended remains ended. Returns false for an unknown user. */
    enable: (userId: string, actor: Actor): Promise<boolean> =>
      outbox.change(actor, async (change) => {
        const { trx } = change;
        await lockOrganizationsOf(trx, userId);
        const user = await lockUser(trx, userId);
        if (!user || user.disabled_at === null) return user !== undefined;
        await trx("users").where({ id: userId }).update({ disabled_at: null, disabled_reason: null });
        await recordForMember(change, { userId, type: "member.enabled" });
        return true;
      }),

    /** Ends a user's sessions; with `apps`, also revokes the apps that the user authorized. */
    signOut: (userId: string, { apps }: { apps: boolean }, actor: Actor): Promise<SignedOut> =>
      outbox.change(actor, async (change) => {
        const { trx } = change;
        await lockOrganizationsOf(trx, userId);
        await lockUser(trx, userId);
        const grants = await revokeGrants(change, apps ? { user_id: userId } : firstParty(userId));
        const sessions = await endAllSessions(trx, userId);
        await recordForMember(change, { userId, type: "member.signed_out", sessions: true, apps });
        return { sessions, grants };
      }),

    /** Revokes the member's apps here; if the actor owns all of the member's organizations, also ends sessions. */
    async signOutMember(
      { organizationId, userId }: { organizationId: string; userId: string },
      actor: Actor,
    ): Promise<(SignedOut & { hasEndedSessions: boolean }) | undefined> {
      const membership = { user_id: userId, organization_id: organizationId };
      const isMember = async (q: Knex) =>
        (await q("memberships").where(membership).first("role")) !== undefined;
      // Before the locks, which concern every organization of the user.
      if (!(await isMember(knex))) return undefined;
      return outbox.change(actor, async (change) => {
        const { trx, record } = change;
        const link = { ...membership, created_by: actor.id };
        const hasEndedSessions = await isAuthorizedUnderLock(trx, link);
        if (!(await isMember(trx))) return undefined;
        let grants = await revokeGrants(change, membership);
        let sessions = 0;
        if (hasEndedSessions) {
          grants += await revokeGrants(change, firstParty(userId));
          sessions = await endAllSessions(trx, userId);
        }
        const event = { type: "member.signed_out", sessions: hasEndedSessions, apps: true } as const;
        await record(memberEvent(organizationId, { userId, ...event }));
        return { sessions, grants, hasEndedSessions };
      });
    },
  };
}

function disabledOf({ disabled_at: at, disabled_reason: reason }: UserRow): DisabledAccount | undefined {
  return at === null ? undefined : { at, reason };
}
