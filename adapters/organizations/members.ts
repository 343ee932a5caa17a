import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { revokeGrants } from "../oauth/grants.ts";
import type { WebhookDeletion } from "../webhooks/store.ts";
import { revokeInvitations } from "./invitations.ts";
import { revokeResetLinksBy, revokeResetLinksFor } from "./reset-revocation.ts";
import { lockOrganization, manageableRoles, ROLES, type Role } from "./store.ts";

/** A member of an organization. `joinedAt` is epoch milliseconds. */
export type Member = { id: string; username: string; role: Role; joinedAt: number };

/** Why a member was not changed. */
export type MemberRefusal = "missing" | "forbidden" | "last_owner";

/**
 * Stores the members of organizations. Changes of one organization are serialized, so concurrent changes never remove its
 * last owner.
 */
export type MemberStore = {
  /** Lists the members, ordered by username. */
  list(organizationId: string): Promise<Member[]>;
  changeRole(change: Change & { role: Role }): Promise<MemberRefusal | undefined>;
  /**
   * Removes a member, and revokes the member's grants and pending invitations in the organization. With
   * `deletesWebhooks`, also deletes the webhooks that the member created there, also through apps.
   */
  remove(change: Change & { deletesWebhooks?: boolean }): Promise<MemberRefusal | undefined>;
};

type Change = {
  organizationId: string;
  userId: string;
  /** The roles that the actor may change or remove. */
  manageableRoles: readonly Role[];
  actor: Actor;
};

/** Creates the member store of a database. */
export function createMemberStore(
  { knex, transaction }: Database,
  outbox: Outbox,
  webhookDeletion: Pick<WebhookDeletion, "removeCreated">,
): MemberStore {
  /** Runs `work` while the organization is locked, unless the change is refused. */
  function change(
    { organizationId, userId, manageableRoles }: Change,
    removesOwner: boolean,
    work: (trx: Knex.Transaction, role: Role) => Promise<void>,
  ): Promise<MemberRefusal | undefined> {
    return transaction(async (trx) => {
      if (!(await lockOrganization(trx, organizationId))) return "missing";
      const members = trx("memberships").where({ organization_id: organizationId });
      const found = await members.clone().where({ user_id: userId }).first("role");
      if (!found) return "missing";
      if (!manageableRoles.includes(found.role)) return "forbidden";
      if (found.role === "owner" && removesOwner) {
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

    changeRole: ({ role, ...target }) =>
      change(target, role !== "owner", async (trx, before) => {
        if (before === role) return;
        const { organizationId, userId, actor } = target;
        await trx("memberships").where({ organization_id: organizationId, user_id: userId }).update({ role });
        await revokeInvitations(
          trx,
          outbox,
          actor,
          { organization_id: organizationId, created_by: userId },
          ROLES.filter((one) => !manageableRoles(role).includes(one)),
        );
        if (before === "owner") await revokeResetLinksBy(trx, userId, organizationId);
        await outbox.record(trx, actor, {
          organizationId,
          type: "member.role_changed",
          subject: userId,
          data: { user_id: userId, from: before, to: role },
        });
      }),

    remove: ({ deletesWebhooks = false, ...target }) =>
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
  await outbox.record(trx, actor, {
    organizationId,
    type: "member.removed",
    subject: userId,
    data: { user_id: userId, role },
  });
}
