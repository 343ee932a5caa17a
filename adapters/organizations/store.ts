import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Role } from "../../resources/access/scopes.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import type { Plan } from "../../resources/plans.ts";
import { newId } from "../crypto/ids.ts";
import type { BeforeCommit, Database } from "../database/index.ts";
import type { OrganizationRow } from "../database/tables/organizations.ts";
import { memberEvent } from "../events/member-events.ts";
import { type Change, type Outbox, organizationEvent } from "../events/outbox.ts";
import { QuotaExceeded } from "../links/usage.ts";
import { lockOrganization, lockUser } from "../locks.ts";
import { createClientFor, type NewClient, removeClient } from "../oauth/clients.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { revokeLinks } from "../one-time-links.ts";

/** An organization that has not been deleted. */
export type Organization = { id: string; name: string; plan: Plan };
export type { Role };
/** When the operator suspended an organization, in epoch milliseconds, and why. */
export type Suspension = { at: number; reason: string | null };

type SuspensionColumns = Pick<OrganizationRow, "suspended_at" | "suspended_reason">;
/** An organization of a user, with the user's role. */
export type Membership = Organization & {
  role: Role;
  requiresSecondFactor: boolean;
  suspension?: Suspension;
};

/** `client` is set only by the call that created it, which is the only time its secret is known. */
export type PlanChange = { organization: Organization; client?: NewClient };

const COLUMNS = ["id", "name", "plan"] as const;

export function createOrganizationStore({ knex }: Database, outbox: Outbox) {
  return {
    /** Creates an organization, with a client on a paid plan and an owner if given. @throws QuotaExceeded */
    create: (
      name: string,
      plan: Plan,
      actor: Actor,
      ownerId?: string,
      { maxOwned, beforeCommit }: { maxOwned?: number; beforeCommit?: BeforeCommit<PlanChange> } = {},
    ) =>
      outbox.change(actor, async (change) => {
        const organization = await insertOrganization(change, { name, plan, ownerId });
        if (ownerId && maxOwned !== undefined) await checkOwned(change.trx, ownerId, maxOwned);
        const created = await ensureClient(change, organization);
        await beforeCommit?.(created);
        return created;
      }),

    /** Changes the plan and creates a client with the first paid plan. Resolves to undefined for an unknown id. */
    setPlan: (
      id: string,
      plan: Plan,
      actor: Actor,
      beforeCommit?: BeforeCommit<PlanChange>,
    ): Promise<PlanChange | undefined> =>
      outbox.change(actor, async (change) => {
        const { trx, record } = change;
        // The second of two concurrent upgrades waits here and finds the client of the first.
        const before = await lockOrganization(trx, id);
        if (!before) return undefined;
        if (before.plan !== plan) {
          await trx("organizations").where({ id }).update({ plan });
          await record(organizationEvent(id, "plan.changed", { from: before.plan, to: plan }));
        }
        const changed = await ensureClient(change, { id, name: before.name, plan });
        await beforeCommit?.(changed);
        return changed;
      }),

    /** Deletes an organization. Its row remains, so the slugs of its links are never reused. */
    remove: (id: string, actor: Actor, reason?: string) =>
      outbox.change(actor, (change) => removeOrganization(change, id, reason)),

    addMember: (organizationId: string, userId: string, role: Role, actor: Actor) =>
      outbox.change(actor, (change) => addMember(change, { organizationId, userId, role })),

    find: (id: string): Promise<Organization | undefined> =>
      knex("organizations")
        .where({ id })
        .whereNull("deleted_at")
        .first(...COLUMNS),

    list: (): Promise<Organization[]> =>
      knex("organizations")
        .whereNull("deleted_at")
        .orderBy("id")
        .select(...COLUMNS),

    async listByUser(userId: string): Promise<Membership[]> {
      const rows: (OrganizationRow & { role: Role })[] = await knex("memberships as m")
        .join("organizations as o", "o.id", "m.organization_id")
        .where("m.user_id", userId)
        .orderBy(["m.created_at", "o.id"])
        .select("o.*", "m.role");
      return rows.map(({ id, name, plan, role, ...row }) => {
        const suspension = suspensionOf(row);
        const requiresSecondFactor = Boolean(row.require_second_factor);
        return { id, name, plan, role, requiresSecondFactor, ...(suspension && { suspension }) };
      });
    },
  };
}

export function suspensionOf(row: SuspensionColumns): Suspension | undefined {
  const { suspended_at: at, suspended_reason: reason } = row;
  return at === null ? undefined : { at, reason };
}

/** On the free plan, a client is kept but rejected. */
async function ensureClient({ trx, record }: Change, organization: Organization): Promise<PlanChange> {
  const { id: organizationId, plan } = organization;
  const client = plan === "free" ? undefined : await createClientFor(trx, organizationId);
  if (!client) return { organization };
  const { clientId: subject } = client;
  await record({ organizationId, type: "client.created", subject, data: { client_id: subject } });
  return { organization, client };
}

/** Inserts an organization, and an owner if `ownerId` is given, but no client. Part of the caller's transaction. */
export async function insertOrganization(
  { trx, record }: Change,
  { name, plan, ownerId }: { name: string; plan: Plan; ownerId?: string | undefined },
): Promise<Organization> {
  const organization: Organization = { id: newId("org"), name, plan };
  const now = Date.now();
  await trx("organizations").insert({ ...organization, created_at: now, updated_at: now });
  await trx("organization_usage").insert({ organization_id: organization.id, links: 0, link_bytes: 0 });
  if (ownerId) await insertMember(trx, { userId: ownerId, organizationId: organization.id, role: "owner" });
  const data = { name, plan, ...(ownerId && { owner_id: ownerId }) };
  await record(organizationEvent(organization.id, "organization.created", data));
  return organization;
}

/** Deletes an organization like `remove`. Part of the caller's transaction. */
export async function removeOrganization(change: Change, id: string, reason?: string): Promise<boolean> {
  const { trx, record } = change;
  if (!(await lockOrganization(trx, id))) return false;
  const own = { organization_id: id };
  await trx("organizations").where({ id }).update({ deleted_at: Date.now() });
  // Webhooks first, so they receive none of the events that follow.
  const webhooks = await trx("webhooks").where(own).pluck("id");
  await trx("deliveries").whereIn("webhook_id", webhooks).delete();
  await trx("webhooks").where(own).delete();
  await trx("delivery_usage").where(own).delete();
  await removeClient(change, id);
  await revokeResetLinksFor(trx, await trx("memberships").where(own).pluck("user_id"));
  // Memberships before grants: an approval locks its membership until the grant is stored.
  await trx("memberships").where(own).delete();
  await revokeGrants(change, own);
  for (const table of ["invitations", "trust_rules", "approved_apps", "domains"] as const)
    await trx(table).where(own).delete();
  await record(organizationEvent(id, "organization.deleted", { ...(reason && { reason }) }));
  return true;
}

type NewMember = { organizationId: string; userId: string; role: Role };

/** Adds a member to an organization, which is locked first. */
export async function addMember({ trx, record }: Change, member: NewMember): Promise<void> {
  const { organizationId, ...added } = member;
  await lockOrganization(trx, organizationId);
  await insertMember(trx, member);
  await record(memberEvent(organizationId, { type: "member.added", ...added }));
}

/** Locks the user, too, which serializes this with creating and redeeming reset links. Part of the transaction. */
async function insertMember(
  trx: Knex.Transaction,
  { organizationId, userId, role }: NewMember,
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

/** Memberships decide who may reset a password, so links by owners end when they change. Part of the transaction. */
export async function revokeResetLinksFor(trx: Knex.Transaction, userIds: string[]): Promise<void> {
  await revokeLinks(trx, (link) =>
    link.where({ purpose: "password_reset" }).whereIn("user_id", userIds).whereNot("created_by", OPERATOR.id),
  );
}

/** Checks how many organizations a user owns. The caller's transaction has locked the user. @throws QuotaExceeded */
async function checkOwned(trx: Knex.Transaction, userId: string, max: number): Promise<void> {
  const [row] = await trx("memberships").where({ user_id: userId, role: "owner" }).count({ owned: "*" });
  if (Number(row?.owned) > max) throw new QuotaExceeded("organizations", max);
}
