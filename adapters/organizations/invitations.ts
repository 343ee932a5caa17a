import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { manageableRoles, ROLES } from "../../resources/access/scopes.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import type { Plan } from "../../resources/plans.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { newId, newSecret, sha256 } from "../crypto/ids.ts";
import { isDuplicate } from "../database/errors.ts";
import type { Database } from "../database/index.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { QuotaExceeded } from "../links/usage.ts";
import { lockOrganization, lockUser } from "../locks.ts";
import { countMails, queueMail } from "../mail/queue.ts";
import { addMember, type Role } from "./store.ts";

/** A single-use invitation to an organization. Times are epoch milliseconds. */
export type Invitation = {
  id: string;
  role: Role;
  createdBy: string;
  /** For whom it is, in the words of its creator. */
  label: string | null;
  email: string | null;
  createdAt: number;
  expiresAt: number;
};

type OpenInvitation = {
  organizationId: string;
  organizationName: string;
  plan: Plan;
  role: Role;
  /** The username of the member who created it. Null for the operator. */
  inviter: string | null;
};

type LimitsOf = (plan: Plan) => { members: number };

type Creation = {
  organizationId: string;
  role: Role;
  lifetimeMs: number;
  actor: Actor;
  label?: string | undefined;
};

type CreatedInvitation = { invitation: Invitation; token: string };

// Per day. More would let a user fill the mailboxes of others.
const MAILS_PER_USER = 50;
const MAILS_PER_ADDRESS = 5;

export function createInvitationStore({ knex }: Database, outbox: Outbox, encryption: Encryption) {
  return {
    /** Resolves to the invitation and the token of its link. Throws QuotaExceeded; pending invitations count, too. */
    create: (creation: Creation, limitsOf?: LimitsOf) =>
      outbox.change(creation.actor, (change) => insertInvitation(change, creation, null, limitsOf)),

    /** Creates an invitation and queues it as an email. Resolves to undefined after too many emails in a day. */
    createByMail: (
      creation: Creation,
      email: string,
      limitsOf?: LimitsOf,
    ): Promise<CreatedInvitation | undefined> =>
      outbox.change(creation.actor, async (change) => {
        const { trx, actor } = change;
        await lockOrganization(trx, creation.organizationId);
        await lockUser(trx, actor.id);
        const byUser = await countMails(trx, { kind: "invitation", user_id: actor.id });
        const byAddress = await countMails(trx, { kind: "invitation", recipient: email });
        if (byUser >= MAILS_PER_USER || byAddress >= MAILS_PER_ADDRESS) return undefined;
        const created = await insertInvitation(change, creation, email, limitsOf);
        const { token } = created;
        const found = await findOpenInvitation(trx, token);
        const data = { organization: found?.organizationName, inviter: found?.inviter, role: creation.role };
        const mail = { kind: "invitation", recipient: email, userId: actor.id, data } as const;
        await queueMail(trx, mail, { encryption, token });
        return created;
      }),

    /** Lists pending invitations, newest first. `createdBy` is a username. */
    list: (organizationId: string): Promise<Invitation[]> =>
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
          label: "i.label",
          email: "i.email",
          createdAt: "i.created_at",
          expiresAt: "i.expires_at",
        }),

    /** Revokes a pending invitation if its role is one of `roles`. Returns whether there was one. */
    revoke: (organizationId: string, id: string, roles: readonly Role[], actor: Actor) =>
      outbox.change(actor, async (change) => {
        const filter = { organization_id: organizationId, id };
        return (await revokeInvitations(change, filter, roles)) > 0;
      }),

    find: (token: string) => findOpenInvitation(knex, token),

    /** Concurrent calls succeed once. An invitation of someone who is already a member remains valid. */
    async accept(token: string, actor: Actor) {
      try {
        return await outbox.change(actor, (change) => acceptInvitation(change, token));
      } catch (error) {
        // The actor concurrently accepted another invitation.
        if (!isDuplicate(error)) throw error;
        const found = await findOpenInvitation(knex, token);
        return found && { ...found, isNew: false };
      }
    },
  };
}

async function insertInvitation(
  { trx, actor, record }: Change,
  creation: Creation,
  email: string | null,
  limitsOf?: LimitsOf,
): Promise<CreatedInvitation> {
  const { organizationId, role, lifetimeMs, label = null } = creation;
  if (limitsOf) await checkMembers(trx, organizationId, limitsOf);
  const token = newSecret("");
  const id = newId("inv");
  const createdAt = Date.now();
  const expiresAt = createdAt + lifetimeMs;
  await trx("invitations").insert({
    id,
    id_hash: sha256(token),
    organization_id: organizationId,
    role,
    created_by: actor.id,
    email,
    label,
    created_at: createdAt,
    expires_at: expiresAt,
  });
  const data = eventData({ id, role, label, email });
  await record({ organizationId, type: "invitation.created", subject: id, data });
  return { invitation: { id, role, createdBy: actor.id, label, email, createdAt, expiresAt }, token };
}

/** An event has one label for whom the invitation is: that of its creator, or else the address. */
function eventData({ id, role, label, email }: Pick<Invitation, "id" | "role" | "label" | "email">) {
  return { invitation_id: id, role, label: label ?? email };
}

/** Locks the organization and checks its members, each of whom was invited. @throws QuotaExceeded */
async function checkMembers(
  trx: Knex.Transaction,
  organizationId: string,
  limitsOf: LimitsOf,
): Promise<void> {
  const organization = await lockOrganization(trx, organizationId);
  if (!organization) return;
  const own = { organization_id: organizationId };
  const [members] = await trx("memberships").where(own).count({ total: "*" });
  const [invited] = await trx("invitations")
    .where(own)
    .whereNull("used_at")
    .where("expires_at", ">", Date.now())
    .count({ total: "*" });
  const limit = limitsOf(organization.plan).members;
  if (Number(members?.total) + Number(invited?.total) >= limit) throw new QuotaExceeded("members", limit);
}

/** Finds an invitation whose creator may still grant its role: a member with a sufficient role, or the operator. */
export async function findOpenInvitation(knex: Knex, token: string): Promise<OpenInvitation | undefined> {
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
      plan: "o.plan",
      role: "i.role",
      inviter: "u.username",
      createdBy: "i.created_by",
      creatorRole: "c.role",
    });
  if (!row) return undefined;
  const { createdBy, creatorRole, ...found } = row;
  if (createdBy === OPERATOR.id) return found;
  return creatorRole && manageableRoles(creatorRole).includes(found.role) ? found : undefined;
}

export async function acceptInvitation(
  change: Change,
  token: string,
): Promise<(OpenInvitation & { isNew: boolean }) | undefined> {
  const { trx, actor } = change;
  const pending = await findOpenInvitation(trx, token);
  // Organizations are always locked first.
  if (!pending || !(await lockOrganization(trx, pending.organizationId))) return undefined;
  // The creator's role may have changed before the lock was granted.
  const found = await findOpenInvitation(trx, token);
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
  await addMember(change, { organizationId, userId: actor.id, role });
  return { ...found, isNew: true };
}

/** Revokes pending invitations and returns their number. Part of the caller's transaction. */
export async function revokeInvitations(
  { trx, record }: Change,
  filter: { organization_id: string; id?: string; created_by?: string },
  roles: readonly Role[] = ROLES,
): Promise<number> {
  const pending = await trx("invitations")
    .where(filter)
    .whereIn("role", roles)
    .whereNull("used_at")
    .where("expires_at", ">", Date.now())
    .forUpdate()
    .select("id", "role", "label", "email");
  const ids = pending.map(({ id }) => id);
  if (ids.length === 0) return 0;
  await trx("invitations").whereIn("id", ids).delete();
  const events = pending.map((invitation) => ({
    organizationId: filter.organization_id,
    type: "invitation.revoked" as const,
    subject: invitation.id,
    data: eventData(invitation),
  }));
  await record(...events);
  return ids.length;
}
