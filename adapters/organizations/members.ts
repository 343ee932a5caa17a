import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import type { Database } from "./database.ts";
import { endGrants } from "./grants.ts";
import { revokeInvitations } from "./invitations.ts";
import type { Journal } from "./journal.ts";
import { lockOrganization, ROLES, type Role, rolesWithin } from "./organizations.ts";
import { revokeResetLinksBy, revokeResetLinksFor } from "./reset-revocation.ts";

/** A person in an organization. `joinedAt` is epoch milliseconds. */
export type Member = { id: string; username: string; role: Role; joinedAt: number };

/** Why a member was left as he or she is. */
export type MemberRefusal = "missing" | "forbidden" | "last_owner";

/**
 * The people of organizations. Changes of one organization follow one another, so that it never loses its last owner,
 * whoever goes at the same time. `touches` are the roles that whoever does it may take away.
 */
export type MemberStore = {
  /** By name. */
  list(organizationId: string): Promise<Member[]>;
  changeRole(change: Change & { role: Role }): Promise<MemberRefusal | undefined>;
  /** Takes a person out: what apps may do in his or her name here ends, and so do open invitations he or she made. */
  remove(change: Change): Promise<MemberRefusal | undefined>;
};

type Change = { organizationId: string; userId: string; touches: readonly Role[]; by: By };

/** The members of a database. */
export function createMemberStore({ knex, transaction }: Database, journal: Journal): MemberStore {
  /** Runs `work` while nobody else changes the members; not at all where the change is refused. */
  function change(
    { organizationId, userId, touches }: Change,
    losesOwner: boolean,
    work: (trx: Knex.Transaction, role: Role) => Promise<void>,
  ): Promise<MemberRefusal | undefined> {
    return transaction(async (trx) => {
      if (!(await lockOrganization(trx, organizationId))) return "missing";
      const members = trx("memberships").where({ organization_id: organizationId });
      const found = await members.clone().where({ user_id: userId }).first("role");
      if (!found) return "missing";
      if (!touches.includes(found.role)) return "forbidden";
      if (found.role === "owner" && losesOwner) {
        const owners = await members.clone().where({ role: "owner" }).pluck("user_id");
        if (owners.length === 1) return "last_owner";
      }
      await work(trx, found.role);
      return undefined;
    });
  }

  return {
    list: (organizationId) =>
      knex("memberships as m")
        .join("users as u", "u.id", "m.user_id")
        .where("m.organization_id", organizationId)
        .orderBy("u.username_key")
        .select({ id: "u.id", username: "u.username", role: "m.role", joinedAt: "m.created_at" }),

    changeRole: ({ role, ...where }) =>
      change(where, role !== "owner", async (trx, before) => {
        if (before === role) return;
        const { organizationId, userId, by } = where;
        await trx("memberships").where({ organization_id: organizationId, user_id: userId }).update({ role });
        await revokeInvitations(
          trx,
          journal,
          by,
          { organization_id: organizationId, created_by: userId },
          ROLES.filter((one) => !rolesWithin(role).includes(one)),
        );
        if (before === "owner") await revokeResetLinksBy(trx, userId, organizationId);
        await journal.record(trx, by, {
          organizationId,
          type: "member.role_changed",
          subject: userId,
          data: { user_id: userId, from: before, to: role },
        });
      }),

    remove: (where) =>
      change(where, true, (trx, role) => {
        const { organizationId, userId, by } = where;
        return removeMember(trx, journal, by, { organizationId, userId, role });
      }),
  };
}

/** Takes a person out as `remove` does, with no question asked; part of the caller's transaction. */
export async function removeMember(
  trx: Knex.Transaction,
  journal: Journal,
  by: By,
  { organizationId, userId, role }: { organizationId: string; userId: string; role: Role },
): Promise<void> {
  const membership = { organization_id: organizationId, user_id: userId };
  await trx("memberships").where(membership).delete();
  await endGrants(trx, journal, by, membership);
  await revokeResetLinksBy(trx, userId, organizationId);
  await revokeResetLinksFor(trx, [userId]);
  await revokeInvitations(trx, journal, by, { organization_id: organizationId, created_by: userId });
  await journal.record(trx, by, {
    organizationId,
    type: "member.removed",
    subject: userId,
    data: { user_id: userId, role },
  });
}
