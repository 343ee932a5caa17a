import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import type { Plan } from "../resources/plans.ts";
import type { Role } from "../resources/scopes.ts";
import { createClientFor, type NewClient, removeClient } from "./clients.ts";
import type { Database } from "./database.ts";
import { endGrants } from "./grants.ts";
import { newId } from "./id.ts";
import type { Happening, Journal } from "./journal.ts";
import { lockUser, revokeResetLinksFor } from "./reset-revocation.ts";

export type Organization = { id: string; name: string; plan: Plan };
export type { Role };
/** The roles of members, from the most to the least privileged. */
export const ROLES = ["owner", "admin", "member"] as const satisfies readonly Role[];
export type Membership = Organization & { role: Role };

const MANAGED: Record<Role, readonly Role[]> = { owner: ROLES, admin: ["admin", "member"], member: [] };

/** The roles that a member with this role may give and take. */
export function rolesWithin(role: Role): readonly Role[] {
  return MANAGED[role];
}

/** `client` is there only when this call made it: the one time that its secret is known. */
export type PlanChange = { organization: Organization; client?: NewClient };

/** Organizations and who belongs to them. */
export type OrganizationStore = {
  /** Makes an organization, its client if the plan is paid, and its owner if one is named: all or nothing. */
  create(name: string, plan: Plan, by: By, ownerId?: string): Promise<PlanChange>;
  /** Changes the plan; the first paid one makes the client in the same transaction. Nothing for an unknown id. */
  setPlan(id: string, plan: Plan, by: By): Promise<PlanChange | undefined>;
  /** Whether there was one to rename. */
  rename(id: string, name: string, by: By): Promise<boolean>;
  /**
   * Ends an organization: at once nothing is left of its members, client, webhooks, and of what apps were allowed. The
   * row stays, for the addresses of its links are never given out again. Whether there was one.
   */
  remove(id: string, by: By): Promise<boolean>;
  /** Makes a person a member. */
  addMember(id: string, userId: string, role: Role, by: By): Promise<void>;
  find(id: string): Promise<Organization | undefined>;
  list(): Promise<Organization[]>;
  /** The organizations that a person belongs to, oldest membership first. */
  ofUser(userId: string): Promise<Membership[]>;
};

const columns = ["organizations.id", "organizations.name", "organizations.plan"] as const;

/** The organizations of a database. */
export function createOrganizationStore(
  { knex, transaction }: Database,
  journal: Journal,
): OrganizationStore {
  async function withClient(trx: Knex.Transaction, organization: Organization, by: By): Promise<PlanChange> {
    const { id, plan } = organization;
    // On the free plan a client stays, and is refused.
    const client = plan === "free" ? undefined : await createClientFor(trx, id);
    if (!client) return { organization };
    const data = { client_id: client.clientId };
    await journal.record(trx, by, {
      organizationId: id,
      type: "client.created",
      subject: client.clientId,
      data,
    });
    return { organization, client };
  }

  return {
    create: (name, plan, by, ownerId) =>
      transaction(async (trx) =>
        withClient(trx, await insertOrganization(trx, journal, { name, plan, by, ownerId }), by),
      ),

    setPlan: (id, plan, by) =>
      transaction(async (trx) => {
        // Of two upgrades at once the second one finds the client.
        if (!(await lockOrganization(trx, id))) return undefined;
        const organization = () => trx("organizations").where({ id });
        const before: Organization = await organization().first(columns);
        if (before.plan !== plan) {
          await organization().update({ plan });
          const data = { from: before.plan, to: plan };
          await journal.record(trx, by, { organizationId: id, type: "plan.changed", subject: id, data });
        }
        return withClient(trx, { ...before, plan }, by);
      }),

    rename: (id, name, by) =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return false;
        const { name: before } = await trx("organizations").where({ id }).first("name");
        if (before === name) return true;
        await trx("organizations").where({ id }).update({ name });
        const data = { from: before, to: name };
        await journal.record(trx, by, {
          organizationId: id,
          type: "organization.renamed",
          subject: id,
          data,
        });
        return true;
      }),

    remove: (id, by) => transaction((trx) => removeOrganization(trx, journal, by, id)),

    addMember: (id, userId, role, by) =>
      transaction(async (trx) => {
        await lockOrganization(trx, id);
        await addMember(trx, userId, id, role);
        await journal.record(trx, by, memberAdded(id, userId, role));
      }),

    find: (id) => knex("organizations").where({ id }).whereNull("deleted_at").first(columns),

    list: () => knex("organizations").whereNull("deleted_at").orderBy("id").select(columns),

    ofUser: (userId) =>
      knex("memberships")
        .join("organizations", "organizations.id", "memberships.organization_id")
        .where("memberships.user_id", userId)
        .orderBy(["memberships.created_at", "organizations.id"])
        .select(...columns, "memberships.role"),
  };
}

type NewOrganization = { name: string; plan: Plan; by: By; ownerId?: string | undefined };

/** Makes an organization without its client, and its owner if one is named; part of the caller's transaction. */
export async function insertOrganization(
  trx: Knex.Transaction,
  journal: Journal,
  { name, plan, by, ownerId }: NewOrganization,
): Promise<Organization> {
  const organization: Organization = { id: newId("org"), name, plan };
  const now = Date.now();
  await trx("organizations").insert({ ...organization, created_at: now, updated_at: now });
  if (ownerId) await addMember(trx, ownerId, organization.id, "owner");
  await journal.record(trx, by, {
    organizationId: organization.id,
    type: "organization.created",
    subject: organization.id,
    data: { name, plan, ...(ownerId && { owner_id: ownerId }) },
  });
  return organization;
}

/** Ends an organization as `remove` does; part of the caller's transaction. */
export async function removeOrganization(
  trx: Knex.Transaction,
  journal: Journal,
  by: By,
  id: string,
): Promise<boolean> {
  if (!(await lockOrganization(trx, id))) return false;
  const own = { organization_id: id };
  await trx("organizations").where({ id }).update({ deleted_at: Date.now() });
  // Webhooks first: nobody is left to be told.
  const webhooks = await trx("webhooks").where(own).pluck("id");
  await trx("deliveries").whereIn("webhook_id", webhooks).delete();
  await trx("webhooks").where(own).delete();
  await removeClient(trx, journal, by, id);
  await revokeResetLinksFor(trx, await trx("memberships").where(own).pluck("user_id"));
  // Before the grants: one that is being approved holds its membership until it is stored.
  await trx("memberships").where(own).delete();
  await endGrants(trx, journal, by, own);
  await trx("invitations").where(own).delete();
  await journal.record(trx, by, {
    organizationId: id,
    type: "organization.deleted",
    subject: id,
    data: {},
  });
  return true;
}

/** Holds whoever else changes an organization up until the caller's transaction is over; false when there is none. */
export async function lockOrganization(trx: Knex.Transaction, id: string): Promise<boolean> {
  const organization = trx("organizations").where({ id }).whereNull("deleted_at");
  return (await organization.update({ updated_at: Date.now() })) > 0;
}

/**
 * Adds a member and revokes the user's open reset links; part of the caller's transaction, which has locked the
 * organization. The user's lock orders this against a reset link that is created or used at the same time.
 */
export async function addMember(
  trx: Knex.Transaction,
  userId: string,
  organizationId: string,
  role: Role,
): Promise<void> {
  await lockUser(trx, userId);
  await revokeResetLinksFor(trx, [userId]);
  await trx("memberships").insert({
    user_id: userId,
    organization_id: organizationId,
    role,
    created_at: Date.now(),
  });
}

/** What the journal tells of a new member. */
export function memberAdded(organizationId: string, userId: string, role: Role): Happening {
  return { organizationId, type: "member.added", subject: userId, data: { user_id: userId, role } };
}
