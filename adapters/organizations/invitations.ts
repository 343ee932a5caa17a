import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Plan } from "../../resources/plans.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { sha256 } from "../crypto/hash.ts";
import { OPERATOR_ID } from "../crypto/ids.ts";
import { isDuplicate } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { queueMail } from "../mail/queue.ts";
import { QuotaExceeded } from "../quota-exceeded.ts";
import { type Invitation, insertInvitation, mayMail } from "./insert-invitation.ts";
import { lockUser } from "./reset-revocation.ts";
import {
  addMember,
  findOrganization,
  lockOrganization,
  manageableRoles,
  memberAdded,
  ROLES,
  type Role,
} from "./store.ts";

export type { Invitation };

/** What the link of an invitation shows. */
export type OpenInvitation = {
  organizationId: string;
  organizationName: string;
  role: Role;
  /** The username of the member who created it. Null for the operator. */
  inviter: string | null;
};

/** Stores invitations. Of their links, only a hash is stored. */
export type InvitationStore = {
  /**
   * Creates an invitation. Resolves to it and the token of its link.
   * @throws QuotaExceeded if members and pending invitations have reached the limit of the plan
   */
  create(
    organizationId: string,
    role: Role,
    lifetimeMs: number,
    actor: Actor,
    limitsOf?: LimitsOf,
  ): Promise<{ invitation: Invitation; token: string }>;
  /** Creates an invitation and queues it as an email. Resolves to undefined after too many emails in a day. */
  createByMail(
    organizationId: string,
    role: Role,
    lifetimeMs: number,
    actor: Actor,
    email: string,
    limitsOf?: LimitsOf,
  ): Promise<{ invitation: Invitation; token: string } | undefined>;
  /** Lists pending invitations, newest first. `createdBy` is a username. */
  list(organizationId: string): Promise<Invitation[]>;
  /** Revokes a pending invitation if its role is one of `roles`. Returns whether there was one. */
  revoke(organizationId: string, id: string, roles: readonly Role[], actor: Actor): Promise<boolean>;
  /** Finds the invitation of a token if it can be accepted. */
  find(token: string): Promise<OpenInvitation | undefined>;
  /**
   * Adds the actor to the organization and marks the invitation as used. Concurrent calls succeed once. If the actor
   * is already a member, the invitation remains valid. Resolves to undefined for an invalid token.
   */
  accept(token: string, actor: Actor): Promise<(OpenInvitation & { isNew: boolean }) | undefined>;
};

/** Creates the invitation store of a database. */
export function createInvitationStore(
  { knex, transaction }: Database,
  outbox: Outbox,
  encryption: Encryption,
): InvitationStore {
  return {
    create: (organizationId, role, lifetimeMs, actor, limitsOf) =>
      transaction(async (trx) => {
        if (limitsOf) await checkMembers(trx, organizationId, limitsOf);
        return insertInvitation(trx, outbox, { organizationId, role, lifetimeMs, actor });
      }),

    createByMail: (organizationId, role, lifetimeMs, actor, email, limitsOf) =>
      transaction(async (trx) => {
        await lockOrganization(trx, organizationId);
        if (limitsOf) await checkMembers(trx, organizationId, limitsOf);
        await lockUser(trx, actor.id);
        if (!(await mayMail(trx, actor.id, email))) return undefined;
        const creation = { organizationId, role, lifetimeMs, actor, email };
        const { invitation, token } = await insertInvitation(trx, outbox, creation);
        const found = await findOpen(trx, token);
        const data = { organization: found?.organizationName, inviter: found?.inviter, role };
        const mail = { kind: "invitation", recipient: email, userId: actor.id, data } as const;
        await queueMail(trx, mail, { encryption, token });
        return { invitation, token };
      }),

    list: (organizationId) =>
      knex("invitations as i")
        .leftJoin("users as u", "u.id", "i.created_by")
        .where("i.organization_id", organizationId)
        .whereNull("i.used_at")
        .where("i.expires_at", ">", Date.now())
        .orderBy("i.id", "desc")
        .select({
          id: "i.id",
          role: "i.role",
          createdBy: knex.raw("coalesce(??, ??)", ["u.username", "i.created_by"]),
          email: "i.email",
          createdAt: "i.created_at",
          expiresAt: "i.expires_at",
        }),

    revoke: (organizationId, id, roles, actor) =>
      transaction(async (trx) => {
        const filter = { organization_id: organizationId, id };
        return (await revokeInvitations(trx, outbox, actor, filter, roles)) > 0;
      }),

    find: (token) => findOpen(knex, token),

    async accept(token, actor) {
      try {
        return await transaction((trx) => acceptInvitation(trx, outbox, token, actor));
      } catch (error) {
        // The actor concurrently accepted another invitation.
        if (!isDuplicate(error)) throw error;
        const found = await findOpen(knex, token);
        return found && { ...found, isNew: false };
      }
    },
  };
}

/** Returns whether an invitation can be accepted. */
export async function isInvitationOpen(trx: Knex.Transaction, token: string): Promise<boolean> {
  return (await findOpen(trx, token)) !== undefined;
}

/** Locks the organization and checks its members, each of whom was invited. @throws QuotaExceeded */
async function checkMembers(
  trx: Knex.Transaction,
  organizationId: string,
  limitsOf: LimitsOf,
): Promise<void> {
  if (!(await lockOrganization(trx, organizationId))) return;
  const { plan } = await findOrganization(trx, organizationId);
  const own = { organization_id: organizationId };
  const [members] = await trx("memberships").where(own).count({ total: "*" });
  const [invited] = await trx("invitations")
    .where(own)
    .whereNull("used_at")
    .where("expires_at", ">", Date.now())
    .count({ total: "*" });
  const limit = limitsOf(plan).members;
  if (Number(members?.total) + Number(invited?.total) >= limit) throw new QuotaExceeded("members", limit);
}

type LimitsOf = (plan: Plan) => { members: number };

/** Finds an invitation whose creator may still grant its role: a member with a sufficient role, or the operator. */
async function findOpen(knex: Knex, token: string): Promise<OpenInvitation | undefined> {
  const row: (OpenInvitation & { createdBy: string; creatorRole: Role | null }) | undefined = await knex(
    "invitations as i",
  )
    .join("organizations as o", "o.id", "i.organization_id")
    .leftJoin("memberships as c", (join) =>
      join.on("c.user_id", "i.created_by").andOn("c.organization_id", "i.organization_id"),
    )
    .leftJoin("users as u", "u.id", "i.created_by")
    .where("i.id_hash", sha256(token))
    .whereNull("i.used_at")
    .whereNull("o.deleted_at")
    .whereNull("o.suspended_at")
    .where("i.expires_at", ">", Date.now())
    .first({
      organizationId: "o.id",
      organizationName: "o.name",
      role: "i.role",
      inviter: "u.username",
      createdBy: "i.created_by",
      creatorRole: "c.role",
    });
  if (!row) return undefined;
  const { createdBy, creatorRole, ...found } = row;
  if (createdBy === OPERATOR_ID) return found;
  return creatorRole && manageableRoles(creatorRole).includes(found.role) ? found : undefined;
}

/** Accepts an invitation like `accept`. Part of the caller's transaction. */
export async function acceptInvitation(
  trx: Knex.Transaction,
  outbox: Outbox,
  token: string,
  actor: Actor,
): Promise<(OpenInvitation & { isNew: boolean }) | undefined> {
  const pending = await findOpen(trx, token);
  // Organizations are always locked first.
  if (!pending || !(await lockOrganization(trx, pending.organizationId))) return undefined;
  // The creator's role may have changed before the lock was granted.
  const found = await findOpen(trx, token);
  if (!found) return undefined;
  const { organizationId, role } = found;
  const membership = await trx("memberships")
    .where({ organization_id: organizationId, user_id: actor.id })
    .first("role");
  if (membership) return { ...found, isNew: false };
  const used = await trx("invitations")
    .where({ id_hash: sha256(token), used_at: null })
    .update({ used_at: Date.now() });
  if (!used) return undefined;
  await addMember(trx, actor.id, organizationId, role);
  await outbox.record(trx, actor, memberAdded(organizationId, actor.id, role));
  return { ...found, isNew: true };
}

/** Revokes pending invitations and returns their number. Part of the caller's transaction. */
export async function revokeInvitations(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  filter: { organization_id: string; id?: string; created_by?: string },
  roles: readonly Role[] = ROLES,
): Promise<number> {
  const pending = await trx("invitations")
    .where(filter)
    .whereIn("role", roles)
    .whereNull("used_at")
    .where("expires_at", ">", Date.now())
    .forUpdate()
    .select("id", "role");
  const ids = pending.map(({ id }) => id);
  if (ids.length === 0) return 0;
  await trx("invitations").whereIn("id", ids).delete();
  const events = pending.map(({ id, role }) => ({
    organizationId: filter.organization_id,
    type: "invitation.revoked" as const,
    subject: id,
    data: { invitation_id: id, role },
  }));
  await outbox.record(trx, actor, ...events);
  return ids.length;
}
