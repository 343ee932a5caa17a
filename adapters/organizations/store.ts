import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Role } from "../../resources/access/scopes.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import type { Plan } from "../../resources/plans.ts";
import { newId } from "../crypto/ids.ts";
import type { BeforeCommit, Database } from "../database/index.ts";
import { memberEvent } from "../events/member-events.ts";
import { type DomainEvent, type Outbox, organizationEvent } from "../events/outbox.ts";
import { QuotaExceeded } from "../links/usage.ts";
import { lockOrganization, lockUser } from "../locks.ts";
import { createClientFor, type NewClient, removeClient } from "../oauth/clients.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { type Suspension, type SuspensionColumns, suspensionOf } from "./suspension.ts";

/** An organization that has not been deleted. */
export type Organization = { id: string; name: string; plan: Plan };
export type { Role };
/** An organization of a user, with the user's role. */
export type Membership = Organization & { role: Role; suspension?: Suspension };

/** `client` is set only by the call that created it, which is the only time its secret is known. */
export type PlanChange = { organization: Organization; client?: NewClient };

const COLUMNS = ["id", "name", "plan"] as const;

export function createOrganizationStore({ knex, transaction }: Database, outbox: Outbox) {
  /** On the free plan, a client is kept but rejected. */
  async function ensureClient(trx: Knex.Transaction, actor: Actor, organization: Organization) {
    const { id: organizationId, plan } = organization;
    const client = plan === "free" ? undefined : await createClientFor(trx, organizationId);
    if (!client) return { organization };
    const { clientId: subject } = client;
    const data = { client_id: subject };
    await outbox.record(trx, actor, { organizationId, type: "client.created", subject, data });
    return { organization, client };
  }

  return {
    /** Creates an organization, with a client on a paid plan and an owner if given. @throws QuotaExceeded */
    create: (
      name: string,
      plan: Plan,
      actor: Actor,
      ownerId?: string,
      { maxOwned, beforeCommit }: { maxOwned?: number; beforeCommit?: BeforeCommit<PlanChange> } = {},
    ) =>
      transaction(async (trx) => {
        const organization = await insertOrganization(trx, outbox, { name, plan, actor, ownerId });
        if (ownerId && maxOwned !== undefined) await checkOwned(trx, ownerId, maxOwned);
        const created = await ensureClient(trx, actor, organization);
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
      transaction(async (trx) => {
        // The second of two concurrent upgrades waits here and finds the client of the first.
        if (!(await lockOrganization(trx, id))) return undefined;
        const before = await findOrganization(trx, id);
        if (before.plan !== plan) {
          await trx("organizations").where({ id }).update({ plan });
          const data = { from: before.plan, to: plan };
          await outbox.record(trx, actor, organizationEvent(id, "plan.changed", data));
        }
        const changed = await ensureClient(trx, actor, { ...before, plan });
        await beforeCommit?.(changed);
        return changed;
      }),

    rename: (id: string, name: string, actor: Actor): Promise<boolean> =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return false;
        const before = await findOrganization(trx, id);
        if (before.name === name) return true;
        await trx("organizations").where({ id }).update({ name });
        const data = { from: before.name, to: name };
        await outbox.record(trx, actor, organizationEvent(id, "organization.renamed", data));
        return true;
      }),

    /** Deletes an organization. Its row remains, so the slugs of its links are never reused. */
    remove: (id: string, actor: Actor, reason?: string) =>
      transaction((trx) => removeOrganization(trx, outbox, actor, id, reason)),

    addMember: (id: string, userId: string, role: Role, actor: Actor) =>
      transaction(async (trx) => {
        await lockOrganization(trx, id);
        await addMember(trx, userId, id, role);
        await outbox.record(trx, actor, memberAdded(id, userId, role));
      }),

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
      const rows: (Omit<Membership, "suspension"> & SuspensionColumns)[] = await knex("memberships as m")
        .join("organizations as o", "o.id", "m.organization_id")
        .where("m.user_id", userId)
        .orderBy(["m.created_at", "o.id"])
        .select("o.id", "o.name", "o.plan", "m.role", "o.suspended_at", "o.suspended_reason");
      return rows.map(({ suspended_at, suspended_reason, ...membership }) => {
        const suspension = suspensionOf({ suspended_at, suspended_reason });
        return { ...membership, ...(suspension && { suspension }) };
      });
    },
  };
}

export async function findOrganization(trx: Knex.Transaction, id: string): Promise<Organization> {
  const organization = await trx("organizations")
    .where({ id })
    .first(...COLUMNS);
  if (!organization) throw new TypeError("the organization is not locked");
  return organization;
}

type NewOrganization = { name: string; plan: Plan; actor: Actor; ownerId?: string | undefined };

/** Inserts an organization, and an owner if `ownerId` is given, but no client. Part of the caller's transaction. */
export async function insertOrganization(
  trx: Knex.Transaction,
  outbox: Outbox,
  { name, plan, actor, ownerId }: NewOrganization,
): Promise<Organization> {
  const organization: Organization = { id: newId("org"), name, plan };
  const now = Date.now();
  await trx("organizations").insert({ ...organization, created_at: now, updated_at: now });
  await trx("organization_usage").insert({ organization_id: organization.id, links: 0, link_bytes: 0 });
  if (ownerId) await addMember(trx, ownerId, organization.id, "owner");
  const data = { name, plan, ...(ownerId && { owner_id: ownerId }) };
  await outbox.record(trx, actor, organizationEvent(organization.id, "organization.created", data));
  return organization;
}

/** Deletes an organization like `remove`. Part of the caller's transaction. */
export async function removeOrganization(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  id: string,
  reason?: string,
): Promise<boolean> {
  if (!(await lockOrganization(trx, id))) return false;
  const own = { organization_id: id };
  await trx("organizations").where({ id }).update({ deleted_at: Date.now() });
  // Webhooks first, so they receive none of the events that follow.
  const webhooks = await trx("webhooks").where(own).pluck("id");
  await trx("deliveries").whereIn("webhook_id", webhooks).delete();
  await trx("webhooks").where(own).delete();
  await trx("delivery_usage").where(own).delete();
  await removeClient(trx, outbox, actor, id);
  await revokeResetLinksFor(trx, await trx("memberships").where(own).pluck("user_id"));
  // Memberships before grants: an approval locks its membership until the grant is stored.
  await trx("memberships").where(own).delete();
  await revokeGrants(trx, outbox, actor, own);
  await trx("invitations").where(own).delete();
  await trx("trust_rules").where(own).delete();
  await trx("approved_apps").where(own).delete();
  const data = { ...(reason && { reason }) };
  await outbox.record(trx, actor, organizationEvent(id, "organization.deleted", data));
  return true;
}

/** Locks the user, too, which serializes this with creating and redeeming reset links. Part of the transaction. */
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

/** Memberships decide who may reset a password, so links by owners end when they change. Part of the transaction. */
export async function revokeResetLinksFor(trx: Knex.Transaction, userIds: string[]): Promise<void> {
  await trx("one_time_links")
    .where({ purpose: "password_reset", used_at: null })
    .whereIn("user_id", userIds)
    .whereNot("created_by", OPERATOR.id)
    .update({ used_at: Date.now() });
}

export function memberAdded(organizationId: string, userId: string, role: Role): DomainEvent {
  return memberEvent(organizationId, { userId, type: "member.added", role });
}

/** Checks how many organizations a user owns. The caller's transaction has locked the user. @throws QuotaExceeded */
async function checkOwned(trx: Knex.Transaction, userId: string, max: number): Promise<void> {
  const [row] = await trx("memberships").where({ user_id: userId, role: "owner" }).count({ owned: "*" });
  if (Number(row?.owned) > max) throw new QuotaExceeded("organizations", max);
}
