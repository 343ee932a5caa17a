import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { manageableRoles, ROLES } from "../../resources/access/scopes.ts";
import type { Database } from "../database/index.ts";
import { memberEvent } from "../events/member-events.ts";
import type { Outbox } from "../events/outbox.ts";
import { lockOrganization } from "../locks.ts";
import { revokeGrants } from "../oauth/grants.ts";
import type { WebhookDeletion } from "../webhooks/store.ts";
import { revokeInvitations } from "./invitations.ts";
import { isLastOwner } from "./last-owner.ts";
import { type Role, revokeResetLinksFor } from "./store.ts";

/** A member of an organization. `joinedAt` is epoch milliseconds. */
export type Member = { id: string; username: string; role: Role; joinedAt: number };

export type MemberRefusal = "missing" | "forbidden" | "last_owner";

type Change = {
  organizationId: string;
  userId: string;
  /** The roles that the actor may change or remove. */
  manageableRoles: readonly Role[];
  actor: Actor;
};

/** Changes of one organization are serialized, so concurrent ones never remove its last owner. */
export function createMemberStore(
  { knex, transaction }: Database,
  outbox: Outbox,
  webhookDeletion: Pick<WebhookDeletion, "removeCreated">,
) {
  /** Runs `work` while the organization is locked, unless the change is refused. */
  function change(
    { organizationId, userId, manageableRoles }: Change,
    removesOwner: boolean,
    work: (trx: Knex.Transaction, role: Role) => Promise<void>,
  ): Promise<MemberRefusal | undefined> {
    return transaction(async (trx) => {
      if (!(await lockOrganization(trx, organizationId))) return "missing";
      const member = { organization_id: organizationId, user_id: userId };
      const found = await trx("memberships").where(member).first("role");
      if (!found) return "missing";
      if (!manageableRoles.includes(found.role)) return "forbidden";
      if (removesOwner && (await isLastOwner(trx, organizationId, userId))) return "last_owner";
      await work(trx, found.role);
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

    changeRole: ({ role, ...target }: Change & { role: Role }) =>
      change(target, role !== "owner", async (trx, before) => {
        if (before === role) return;
        const { organizationId, userId, actor } = target;
        await trx("memberships").where({ organization_id: organizationId, user_id: userId }).update({ role });
        const created = { organization_id: organizationId, created_by: userId };
        const lost = ROLES.filter((one) => !manageableRoles(role).includes(one));
        await revokeInvitations(trx, outbox, actor, created, lost);
        if (before === "owner") await revokeResetLinksBy(trx, userId, organizationId);
        const event = { userId, type: "member.role_changed", from: before, to: role } as const;
        await outbox.record(trx, actor, memberEvent(organizationId, event));
      }),

    /** Removes a member with their grants and invitations; `deletesWebhooks` also deletes webhooks they created. */
    remove: ({ deletesWebhooks = false, ...target }: Change & { deletesWebhooks?: boolean }) =>
      change(target, true, async (trx, role) => {
        const { organizationId, userId, actor } = target;
        // Webhooks first, so they receive none of the events that follow.
        if (deletesWebhooks) await webhookDeletion.removeCreated(trx, actor, organizationId, { userId });
        await removeMember(trx, outbox, actor, { organizationId, userId, role });
      }),
  };
}

/** Removes a member like `remove`, but without its checks. Part of the caller's transaction. */
export async function removeMember(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  { organizationId, userId, role }: { organizationId: string; userId: string; role: Role },
): Promise<void> {
  const membership = { organization_id: organizationId, user_id: userId };
  await trx("memberships").where(membership).delete();
  await revokeGrants(trx, outbox, actor, membership);
  await revokeResetLinksBy(trx, userId, organizationId);
  await revokeResetLinksFor(trx, [userId]);
  await revokeInvitations(trx, outbox, actor, { organization_id: organizationId, created_by: userId });
  await outbox.record(trx, actor, memberEvent(organizationId, { userId, type: "member.removed", role }));
}

/** Revokes the unused reset links that a former owner of a locked organization created for its members. */
async function revokeResetLinksBy(
  trx: Knex.Transaction,
  ownerId: string,
  organizationId: string,
): Promise<void> {
  const userIds = await trx("memberships").where({ organization_id: organizationId }).pluck("user_id");
  await trx("one_time_links")
    .where({ purpose: "password_reset", used_at: null, created_by: ownerId })
    .whereIn("user_id", userIds)
    .update({ used_at: Date.now() });
}
