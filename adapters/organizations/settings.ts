import type { Actor } from "../../resources/access/actor.ts";
import type { Role } from "../../resources/access/scopes.ts";
import type { EventType } from "../../resources/events/types.ts";
import type { Plan } from "../../resources/plans.ts";
import type { Database } from "../database/index.ts";
import type { OrganizationRow } from "../database/tables/organizations.ts";
import { type Outbox, organizationEvent } from "../events/outbox.ts";
import { lockOrganization } from "../locks.ts";
import type { AppPolicy } from "../oauth/app-policy.ts";

/** What owners and admins set for their organization. */
export type OrganizationSettings = Pick<AppPolicy, "allowedClients" | "memberApps"> & {
  name: string;
  /** Where visitors of its unavailable links go, unless a link has its own fallback. */
  fallbackUrl: string | null;
  /** An IANA name. Clicks are counted by the days and hours that clocks showed there. */
  timeZone: string;
  /** Whether tokens that act for the organization, or are its client's, must be bound to a key. */
  requiresDpop: boolean;
  /** Whether owners and admins must sign in with a second factor. */
  requiresSecondFactor: boolean;
  /** Whether the identity provider of the service decides which apps may act for the organization's members. */
  enterpriseAuthorization: boolean;
};

/** The settings of an organization that a user belongs to, with the user's role, and its policy on a client. */
export type MemberSettings = OrganizationSettings &
  AppPolicy & { id: string; plan: Plan; role: Role; suspended: boolean };

type Name = keyof OrganizationSettings;
type Setting = {
  column: keyof OrganizationRow;
  event: EventType;
  /** The field of the event with the new value. Other events have the old one, too: `from` and `to`. */
  field?: string;
};

const SETTINGS: Record<Name, Setting> = {
  name: { column: "name", event: "organization.renamed" },
  fallbackUrl: { column: "fallback_url", event: "organization.fallback_url_changed" },
  timeZone: { column: "time_zone", event: "organization.time_zone_changed" },
  allowedClients: { column: "document_clients", event: "organization.allowed_clients_changed" },
  memberApps: { column: "member_apps", event: "organization.member_apps_changed" },
  requiresDpop: { column: "require_dpop", event: "organization.dpop_requirement_changed", field: "required" },
  requiresSecondFactor: {
    column: "require_second_factor",
    event: "organization.second_factor_required",
    field: "required",
  },
  enterpriseAuthorization: {
    column: "enterprise_authorization",
    event: "enterprise_authorization.changed",
    field: "enabled",
  },
};

export function createSettingsStore({ knex }: Database, outbox: Outbox) {
  return {
    async find(id: string): Promise<OrganizationSettings | undefined> {
      const row = await knex("organizations").where({ id }).whereNull("deleted_at").first();
      return row && toSettings(row);
    },

    /** Takes effect with the next request. Returns false for an organization that doesn't exist. */
    change: (id: string, changes: Partial<OrganizationSettings>, actor: Actor): Promise<boolean> =>
      outbox.change(actor, async ({ trx, record }) => {
        const row = await lockOrganization(trx, id);
        if (!row) return false;
        const before = toSettings(row);
        const changed = (Object.keys(changes) as Name[]).filter((name) => changes[name] !== before[name]);
        if (changed.length === 0) return true;
        const columns = changed.map((name) => [SETTINGS[name].column, changes[name]]);
        await trx("organizations").where({ id }).update(Object.fromEntries(columns));
        const events = changed.map((name) => {
          const { event, field } = SETTINGS[name];
          const [from, to] = [before[name], changes[name]];
          return organizationEvent(id, event, field ? { [field]: to } : { from, to });
        });
        await record(...events);
        return true;
      }),

    /** Lists the settings of a user's organizations, and whether each approved a client for members. */
    async listByUser(userId: string, clientId: string): Promise<MemberSettings[]> {
      const rows: (OrganizationRow & { role: Role; approved_client_id: string | null })[] = await knex(
        "memberships as m",
      )
        .join("organizations as o", "o.id", "m.organization_id")
        .leftJoin("approved_apps as a", (join) =>
          join.on("a.organization_id", "o.id").andOnVal("a.client_id", clientId),
        )
        .where("m.user_id", userId)
        .orderBy("o.id")
        .select("o.*", "m.role", "a.client_id as approved_client_id");
      return rows.map((row) => ({
        ...toSettings(row),
        id: row.id,
        plan: row.plan,
        role: row.role,
        suspended: row.suspended_at !== null,
        isApproved: row.approved_client_id !== null,
      }));
    },
  };
}

function toSettings(row: OrganizationRow): OrganizationSettings {
  return {
    name: row.name,
    fallbackUrl: row.fallback_url,
    timeZone: row.time_zone,
    allowedClients: row.document_clients,
    memberApps: row.member_apps,
    requiresDpop: Boolean(row.require_dpop),
    requiresSecondFactor: Boolean(row.require_second_factor),
    enterpriseAuthorization: Boolean(row.enterprise_authorization),
  };
}
