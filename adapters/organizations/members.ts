import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { manageableRoles, ROLES } from "../../resources/access/scopes.ts";
import type { Encryption } from "../crypto/encryption.ts";
import type { Database } from "../database/index.ts";
import { memberEvent } from "../events/member-events.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { lockOrganization } from "../locks.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { revokeLinks } from "../one-time-links.ts";
import { removeCreatedWebhooks } from "../webhooks/store.ts";
import { revokeInvitations } from "./invitations.ts";
import { type Role, revokeResetLinksFor } from "./store.ts";

/** A member of an organization. `joinedAt` is epoch milliseconds. */
export type Member = { id: string; username: string; role: Role; joinedAt: number };

export type MemberRefusal = "missing" | "forbidden" | "last_owner";

type Target = {
  organizationId: string;
  userId: string;
  /** The roles that the actor may change or remove. */
  manageableRoles: readonly Role[];
  actor: Actor;
};

/** Changes of one organization are serialized, so concurrent ones never remove its last owner. */
export function createMemberStore({ knex }: Database, outbox: Outbox, encryption: Encryption) {
  /** Runs `work` while the organization is locked, unless the change is refused. */
  function changeMember(
    { organizationId, userId, manageableRoles, actor }: Target,
    removesOwner: boolean,
    work: (change: Change, role: Role) => Promise<void>,
  ): Promise<MemberRefusal | undefined> {
    return outbox.change(actor, async (change) => {
      const { trx } = change;
      if (!(await lockOrganization(trx, organizationId))) return "missing";
      const member = { organization_id: organizationId, user_id: userId };
      const found = await trx("memberships").where(member).first("role");
      if (!found) return "missing";
      if (!manageableRoles.includes(found.role)) return "forbidden";
      if (removesOwner && (await isLastOwner(trx, organizationId, userId))) return "last_owner";
      await work(change, found.role);
      return undefined;
    });
  }

  return {
    list: (organizationId: string): Promise<Member[]> =>
      knex("memberships as m")
        .join("users as u", "u.id", "m.user_id")
        .where("m.organization_id", organizationId)
        .orderBy("u.username_key")
        .select({ id: "u.id", username: "u.username", role: "m.role", joinedAt: "m.created_at" }),

    changeRole: ({ role, ...target }: Target & { role: Role }) =>
      changeMember(target, role !== "owner", async (change, before) => {
        if (before === role) return;
        const { trx, record } = change;
        const { organizationId, userId } = target;
        await trx("memberships").where({ organization_id: organizationId, user_id: userId }).update({ role });
        const created = { organization_id: organizationId, created_by: userId };
        const lost = ROLES.filter((one) => !manageableRoles(role).includes(one));
        await revokeInvitations(change, created, lost);
        if (before === "owner") await revokeResetLinksBy(trx, userId, organizationId);
        const event = { userId, type: "member.role_changed", from: before, to: role } as const;
        await record(memberEvent(organizationId, event));
      }),

    /** Removes a member with their grants and invitations; `deletesWebhooks` also deletes webhooks they created. */
    remove: ({ deletesWebhooks = false, ...target }: Target & { deletesWebhooks?: boolean }) =>
      changeMember(target, true, async (change, role) => {
        const { organizationId, userId } = target;
        // Webhooks first, so they receive none of the events that follow.
        if (deletesWebhooks) await removeCreatedWebhooks(change, encryption, organizationId, { userId });
        await removeMember(change, { organizationId, userId, role });
      }),
  };
}

/** Removes a member like `remove`, but without its checks. Part of the caller's transaction. */
export async function removeMember(
  change: Change,
  { organizationId, userId, role }: { organizationId: string; userId: string; role: Role },
): Promise<void> {
  const { trx, record } = change;
  const membership = { organization_id: organizationId, user_id: userId };
  await trx("memberships").where(membership).delete();
  await revokeGrants(change, membership);
  await revokeResetLinksBy(trx, userId, organizationId);
  await revokeResetLinksFor(trx, [userId]);
  await revokeInvitations(change, { organization_id: organizationId, created_by: userId });
  await record(memberEvent(organizationId, { userId, type: "member.removed", role }));
}

/** Revokes the unused reset links that a former owner of a locked organization created for its members. */
async function revokeResetLinksBy(
  trx: Knex.Transaction,
  ownerId: string,
  organizationId: string,
): Promise<void> {
  const userIds = await trx("memberships").where({ organization_id: organizationId }).pluck("user_id");
  await revokeLinks(trx, (link) =>
    link.where({ purpose: "password_reset", created_by: ownerId }).whereIn("user_id", userIds),
  );
}

export async function isLastOwner(
  trx: Knex.Transaction,
  organizationId: string,
  userId: string,
): Promise<boolean> {
  const owners = await trx("memberships")
    .where({ organization_id: organizationId, role: "owner" })
    .pluck("user_id");
  return owners.length === 1 && owners[0] === userId;
}
