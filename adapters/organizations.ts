import type { Knex } from "knex";
import type { Plan } from "../resources/plans.ts";
import { createClientFor, type NewClient, writeDocument } from "./clients.ts";
import type { Database } from "./database.ts";
import { newId } from "./id.ts";

export type Organization = { id: string; name: string; plan: Plan };
export type Role = "owner" | "admin" | "member";
export type Membership = Organization & { role: Role };

/** `client` is there only when this call made it: the one time that its secret is known. */
export type PlanChange = { organization: Organization; client?: NewClient };

/** Organizations and who belongs to them. */
export type OrganizationStore = {
  /** Makes an organization, its client if the plan is paid, and its owner if one is named: all or nothing. */
  create(name: string, plan: Plan, ownerId?: string): Promise<PlanChange>;
  /** Changes the plan; the first paid one makes the client in the same transaction. Nothing for an unknown id. */
  setPlan(id: string, plan: Plan): Promise<PlanChange | undefined>;
  /** Makes a person a member. */
  addMember(id: string, userId: string, role: Role): Promise<void>;
  find(id: string): Promise<Organization | undefined>;
  list(): Promise<Organization[]>;
  /** The organizations that a person belongs to, oldest membership first. */
  ofUser(userId: string): Promise<Membership[]>;
};

const columns = ["organizations.id", "organizations.name", "organizations.plan"] as const;

/** The organizations of a database. */
export function createOrganizationStore({ knex, transaction }: Database): OrganizationStore {
  return {
    create: (name, plan, ownerId) =>
      transaction(async (trx) => {
        const organization: Organization = { id: newId("org"), name, plan };
        const now = Date.now();
        await trx("organizations").insert({ ...organization, created_at: now, updated_at: now });
        if (ownerId) await addMember(trx, ownerId, organization.id, "owner");
        return withClient(trx, organization);
      }),

    setPlan: (id, plan) =>
      transaction(async (trx) => {
        // The update locks the row, so that of two upgrades at once the second one finds the client.
        const changed = await trx("organizations").where({ id }).update({ plan, updated_at: Date.now() });
        if (!changed) return undefined;
        return withClient(trx, (await trx("organizations").where({ id }).first(columns)) as Organization);
      }),

    addMember: (id, userId, role) => addMember(knex, userId, id, role),

    find: (id) => knex("organizations").where({ id }).first(columns),

    list: () => knex("organizations").orderBy("id").select(columns),

    ofUser: (userId) =>
      knex("memberships")
        .join("organizations", "organizations.id", "memberships.organization_id")
        .where("memberships.user_id", userId)
        .orderBy(["memberships.created_at", "organizations.id"])
        .select(...columns, "memberships.role"),
  };
}

/** Makes a person a member; part of the caller's transaction. */
export async function addMember(
  trx: Knex,
  userId: string,
  organizationId: string,
  role: Role,
): Promise<void> {
  await trx("memberships").insert({
    user_id: userId,
    organization_id: organizationId,
    role,
    created_at: Date.now(),
  });
}

async function withClient(trx: Knex, organization: Organization): Promise<PlanChange> {
  if (organization.plan === "free") {
    await writeDocument(trx, organization.id); // the client stays, and is refused
    return { organization };
  }
  const client = await createClientFor(trx, organization.id);
  await writeDocument(trx, organization.id);
  return client ? { organization, client } : { organization };
}
