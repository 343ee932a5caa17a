import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import type { Database } from "./database.ts";
import { isDuplicate } from "./engine.ts";
import { sha256 } from "./hash.ts";
import { newId, newSecret, OPERATOR_ID } from "./id.ts";
import type { Journal } from "./journal.ts";
import { addMember, lockOrganization, memberAdded, ROLES, type Role, rolesWithin } from "./organizations.ts";

/** A way into an organization that is good once. Times are epoch milliseconds. */
export type Invitation = { id: string; role: Role; createdBy: string; createdAt: number; expiresAt: number };

/** What its link says to whoever was given it. */
export type OpenInvitation = { organizationId: string; organizationName: string; role: Role };

/** Invitations by link. Only a hash of the link is kept. */
export type InvitationStore = {
  /** Resolves to the invitation and the secret end of its link. */
  create(
    organizationId: string,
    role: Role,
    lifetimeMs: number,
    by: By,
  ): Promise<{ invitation: Invitation; token: string }>;
  /** Those that are still good, newest first; `createdBy` is a name. */
  list(organizationId: string): Promise<Invitation[]>;
  /** Whether there was one to take back. `roles` are those that whoever does it may give. */
  revoke(organizationId: string, id: string, roles: readonly Role[], by: By): Promise<boolean>;
  /** The invitation behind a link that is still good. */
  find(token: string): Promise<OpenInvitation | undefined>;
  /**
   * Makes a person a member and uses the invitation up: once, however many at a time. It stays good when the person is
   * a member already. Nothing for a link that is no good.
   */
  accept(token: string, by: By): Promise<(OpenInvitation & { isNew: boolean }) | undefined>;
};

/** The invitations of a database. */
export function createInvitationStore({ knex, transaction }: Database, journal: Journal): InvitationStore {
  return {
    create: (organizationId, role, lifetimeMs, by) =>
      transaction(async (trx) => {
        const token = newSecret("");
        const now = Date.now();
        const invitation: Invitation = {
          id: newId("inv"),
          role,
          createdBy: by.actor,
          createdAt: now,
          expiresAt: now + lifetimeMs,
        };
        await trx("invitations").insert({
          id: invitation.id,
          id_hash: sha256(token),
          organization_id: organizationId,
          role,
          created_by: by.actor,
          created_at: now,
          expires_at: invitation.expiresAt,
        });
        await journal.record(trx, by, {
          organizationId,
          type: "invitation.created",
          subject: invitation.id,
          data: { invitation_id: invitation.id, role },
        });
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
          createdAt: "i.created_at",
          expiresAt: "i.expires_at",
        }),

    revoke: (organizationId, id, roles, by) =>
      transaction(async (trx) => {
        const which = { organization_id: organizationId, id };
        return (await revokeInvitations(trx, journal, by, which, roles)) > 0;
      }),

    find: (token) => findOpen(knex, token),

    async accept(token, by) {
      try {
        return await transaction((trx) => acceptInvitation(trx, journal, token, by));
      } catch (error) {
        // The same person by another link, at the same time.
        if (!isDuplicate(error)) throw error;
        const found = await findOpen(knex, token);
        return found && { ...found, isNew: false };
      }
    },
  };
}

/** Finds an invitation that can be accepted: its creator is still a member who may give the role, or is the operator. */
async function findOpen(knex: Knex, token: string): Promise<OpenInvitation | undefined> {
  const row: (OpenInvitation & { createdBy: string; creatorRole: Role | null }) | undefined = await knex(
    "invitations as i",
  )
    .join("organizations as o", "o.id", "i.organization_id")
    .leftJoin("memberships as c", (join) =>
      join.on("c.user_id", "i.created_by").andOn("c.organization_id", "i.organization_id"),
    )
    .where("i.id_hash", sha256(token))
    .whereNull("i.used_at")
    .whereNull("o.deleted_at")
    .where("i.expires_at", ">", Date.now())
    .first({
      organizationId: "o.id",
      organizationName: "o.name",
      role: "i.role",
      createdBy: "i.created_by",
      creatorRole: "c.role",
    });
  if (!row) return undefined;
  const { createdBy, creatorRole, ...found } = row;
  if (createdBy === OPERATOR_ID) return found;
  return creatorRole && rolesWithin(creatorRole).includes(found.role) ? found : undefined;
}

/** Accepts an invitation as `accept` does; part of the caller's transaction. */
export async function acceptInvitation(
  trx: Knex.Transaction,
  journal: Journal,
  token: string,
  by: By,
): Promise<(OpenInvitation & { isNew: boolean }) | undefined> {
  const pending = await findOpen(trx, token);
  // Organizations are locked first, as everywhere.
  if (!pending || !(await lockOrganization(trx, pending.organizationId))) return undefined;
  // The creator's role may have changed before the lock was granted.
  const found = await findOpen(trx, token);
  if (!found) return undefined;
  const { organizationId, role } = found;
  const isMember = await trx("memberships")
    .where({ organization_id: organizationId, user_id: by.actor })
    .first("role");
  if (isMember) return { ...found, isNew: false };
  const used = await trx("invitations")
    .where({ id_hash: sha256(token), used_at: null })
    .update({ used_at: Date.now() });
  if (!used) return undefined;
  await addMember(trx, by.actor, organizationId, role);
  await journal.record(trx, by, memberAdded(organizationId, by.actor, role));
  return { ...found, isNew: true };
}

/** Takes open invitations back; part of the caller's transaction. Resolves to their number. */
export async function revokeInvitations(
  trx: Knex.Transaction,
  journal: Journal,
  by: By,
  which: { organization_id: string; id?: string; created_by?: string },
  roles: readonly Role[] = ROLES,
): Promise<number> {
  const open: { id: string; role: Role }[] = await trx("invitations")
    .where(which)
    .whereIn("role", roles)
    .whereNull("used_at")
    .where("expires_at", ">", Date.now())
    .forUpdate()
    .select("id", "role");
  const ids = open.map(({ id }) => id);
  if (ids.length === 0) return 0;
  await trx("invitations").whereIn("id", ids).delete();
  const happenings = open.map(({ id, role }) => ({
    organizationId: which.organization_id,
    type: "invitation.revoked" as const,
    subject: id,
    data: { invitation_id: id, role },
  }));
  await journal.record(trx, by, ...happenings);
  return ids.length;
}
