import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { MANAGERS, type Role } from "../../resources/access/scopes.ts";
import type { Plan } from "../../resources/plans.ts";
import type { Database } from "../database/index.ts";
import type { Flag } from "../database/tables/columns.ts";
import { type Outbox, organizationEvent } from "../events/outbox.ts";
import { lockOrganization } from "../locks.ts";
import type { AllowedClients, AppPolicy, MemberApps } from "../oauth/app-policy.ts";

/** An organization that a user belongs to, with the user's role there, and its policy on a client. */
export type ManagedOrganization = {
  id: string;
  plan: Plan;
  suspended: boolean;
  role: Role;
  appPolicy: AppPolicy;
  requiresDpop: boolean;
  /** Whether this user, an owner or admin, must sign in with a second factor. */
  requiresSecondFactor: boolean;
};

/** Which apps may act for an organization: by their kind, and for members by approval. */
export type AppPolicySettings = { allowedClients: AllowedClients; memberApps: MemberApps };

const POLICY = {
  id: "o.id",
  allowedClients: "o.document_clients",
  memberApps: "o.member_apps",
  approvedClientId: "a.client_id",
};
type PolicyRow = AppPolicySettings & { id: string; approvedClientId: string | null };

/** With DPoP required, tokens that act for the organization, or are its client's, must be bound to a key. */
export function createDpopRequirementStore(database: Database, outbox: Outbox) {
  const { isOn: isRequired, set } = createSwitch(database, outbox, "require_dpop");
  return { isRequired, set };
}

export function createSecondFactorRequirementStore(database: Database, outbox: Outbox) {
  const { isOn: isRequired, set } = createSwitch(database, outbox, "require_second_factor");
  return {
    isRequired,
    set,
    /** Lists the organizations that require one of this user, who is an owner or admin there. */
    listByUser: (userId: string): Promise<string[]> =>
      database
        .knex("memberships as m")
        .join("organizations as o", "o.id", "m.organization_id")
        .where({ "m.user_id": userId, "o.require_second_factor": true })
        .whereIn("m.role", [...MANAGERS])
        .pluck("o.id"),
  };
}

/** Stores whether the identity provider of the service decides which apps may act for an organization's members. */
export function createEnterpriseAuthorizationStore(database: Database, outbox: Outbox) {
  const { isOn: isEnabled, set } = createSwitch(database, outbox, "enterprise_authorization");
  return {
    isEnabled,
    set,
    /** Lists the organizations of a user that enabled it, with the policy of each on a client. */
    async listByUser(userId: string, clientId: string): Promise<ManagedOrganization[]> {
      const rows: (PolicyRow & {
        plan: Plan;
        role: Role;
        requiresDpop: Flag;
        requireSecondFactor: Flag;
        suspendedAt: number | null;
      })[] = await organizationsOf(database.knex, userId, clientId)
        .where("o.enterprise_authorization", true)
        .orderBy("o.id")
        .select({
          ...POLICY,
          plan: "o.plan",
          suspendedAt: "o.suspended_at",
          role: "m.role",
          requiresDpop: "o.require_dpop",
          requireSecondFactor: "o.require_second_factor",
        });
      return rows.map((row) => ({
        id: row.id,
        plan: row.plan,
        role: row.role,
        suspended: row.suspendedAt !== null,
        appPolicy: toPolicy(row),
        requiresDpop: Boolean(row.requiresDpop),
        requiresSecondFactor: Boolean(row.requireSecondFactor) && row.role !== "member",
      }));
    },
  };
}

/** Stores which apps may act for an organization's members. */
export function createAppPolicyStore({ knex, transaction }: Database, outbox: Outbox) {
  return {
    find: (organizationId: string) => findPolicy(knex, organizationId),

    /** Resolves to the policy of each organization of a user on a client, by the organization's id. */
    async findByUser(userId: string, clientId: string): Promise<ReadonlyMap<string, AppPolicy>> {
      const rows: PolicyRow[] = await organizationsOf(knex, userId, clientId).select(POLICY);
      return new Map(rows.map((row) => [row.id, toPolicy(row)]));
    },

    /** Takes effect with the next request of a client. Returns false for an organization that doesn't exist. */
    set: (id: string, changes: Partial<AppPolicySettings>, actor: Actor): Promise<boolean> =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return false;
        const before = (await findPolicy(trx, id)) as AppPolicySettings;
        const after = { ...before, ...changes };
        await trx("organizations")
          .where({ id })
          .update({ document_clients: after.allowedClients, member_apps: after.memberApps });
        const types = {
          allowedClients: "organization.allowed_clients_changed",
          memberApps: "organization.member_apps_changed",
        } as const;
        const changed = (["allowedClients", "memberApps"] as const).filter(
          (name) => before[name] !== after[name],
        );
        const events = changed.map((name) =>
          organizationEvent(id, types[name], { from: before[name], to: after[name] }),
        );
        await outbox.record(trx, actor, ...events);
        return true;
      }),
  };
}

async function findPolicy(knex: Knex, id: string): Promise<AppPolicySettings | undefined> {
  const found = await knex("organizations")
    .where({ id })
    .whereNull("deleted_at")
    .first("document_clients", "member_apps");
  return found && { allowedClients: found.document_clients, memberApps: found.member_apps };
}

/** Queries the organizations of a user, with their approval of a client. */
function organizationsOf(knex: Knex, userId: string, clientId: string) {
  return knex("memberships as m")
    .join("organizations as o", "o.id", "m.organization_id")
    .leftJoin("approved_apps as a", (join) =>
      join.on("a.organization_id", "o.id").andOnVal("a.client_id", clientId),
    )
    .where("m.user_id", userId);
}

function toPolicy({ allowedClients, memberApps, approvedClientId }: PolicyRow): AppPolicy {
  return { allowedClients, memberApps, isApproved: approvedClientId !== null };
}

/** Stores where visitors of an organization's unavailable links go, unless a link has its own fallback. */
export function createFallbackUrlStore({ knex, transaction }: Database, outbox: Outbox) {
  const find = async (q: Knex, id: string): Promise<string | null> => {
    const organization = await q("organizations").where({ id }).whereNull("deleted_at").first("fallback_url");
    return organization?.fallback_url ?? null;
  };
  return {
    find: (organizationId: string) => find(knex, organizationId),

    /** Takes effect with the next request. Returns false for an organization that doesn't exist. */
    set: (id: string, url: string | null, actor: Actor): Promise<boolean> =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return false;
        const before = await find(trx, id);
        if (before === url) return true;
        await trx("organizations").where({ id }).update({ fallback_url: url });
        const data = { from: before, to: url };
        await outbox.record(trx, actor, organizationEvent(id, "organization.fallback_url_changed", data));
        return true;
      }),
  };
}

/** On-off settings by column: their events, with the field that holds the new value. */
const SWITCHES = {
  require_dpop: { type: "organization.dpop_requirement_changed", field: "required" },
  require_second_factor: { type: "organization.second_factor_required", field: "required" },
  enterprise_authorization: { type: "enterprise_authorization.changed", field: "enabled" },
} as const;

function createSwitch({ knex, transaction }: Database, outbox: Outbox, column: keyof typeof SWITCHES) {
  const { type, field } = SWITCHES[column];
  return {
    async isOn(organizationId: string): Promise<boolean> {
      const organization = knex("organizations").where({ id: organizationId }).whereNull("deleted_at");
      return Boolean((await organization.first(column))?.[column]);
    },

    /** Takes effect with the next request. Returns false for an organization that doesn't exist. */
    set: (id: string, isOn: boolean, actor: Actor): Promise<boolean> =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return false;
        const organization = () => trx("organizations").where({ id });
        const before = await organization().first(column);
        if (Boolean(before?.[column]) === isOn) return true;
        await organization().update({ [column]: isOn });
        await outbox.record(trx, actor, organizationEvent(id, type, { [field]: isOn }));
        return true;
      }),
  };
}
