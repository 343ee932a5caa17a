import type { Actor } from "../../resources/access/actor.ts";
import type { Role } from "../../resources/access/scopes.ts";
import type { Plan } from "../../resources/plans.ts";
import type { Database } from "../database/index.ts";
import type { Flag } from "../database/tables.ts";
import type { Outbox } from "../events/outbox.ts";
import type { AppPolicy } from "../oauth/client-policy.ts";
import { lockOrganization } from "./store.ts";

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

/** Stores whether the identity provider of the service decides which apps may act for an organization's members. */
export type EnterpriseAuthorizationStore = {
  isEnabled(organizationId: string): Promise<boolean>;
  /** Lists the organizations of a user that enabled it, with the policy of each on a client. */
  listByUser(userId: string, clientId: string): Promise<ManagedOrganization[]>;
  /** Returns false for an organization that doesn't exist. */
  set(organizationId: string, enabled: boolean, actor: Actor): Promise<boolean>;
};

type ManagedRow = Pick<ManagedOrganization, "id" | "plan" | "role"> &
  Omit<AppPolicy, "isApproved"> & {
    approvedClientId: string | null;
    requiresDpop: Flag;
    requireSecondFactor: Flag;
    suspendedAt: number | null;
  };

/** Creates the store of a database. */
export function createEnterpriseAuthorizationStore(
  { knex, transaction }: Database,
  outbox: Outbox,
): EnterpriseAuthorizationStore {
  return {
    async isEnabled(id) {
      const found = await knex("organizations")
        .where({ id })
        .whereNull("deleted_at")
        .first("enterprise_authorization");
      return Boolean(found?.enterprise_authorization);
    },

    async listByUser(userId, clientId) {
      const rows: ManagedRow[] = await knex("memberships as m")
        .join("organizations as o", "o.id", "m.organization_id")
        .leftJoin("approved_apps as a", (join) =>
          join.on("a.organization_id", "o.id").andOnVal("a.client_id", clientId),
        )
        .where({ "m.user_id": userId, "o.enterprise_authorization": true })
        .orderBy("o.id")
        .select({
          id: "o.id",
          plan: "o.plan",
          suspendedAt: "o.suspended_at",
          role: "m.role",
          allowedClients: "o.document_clients",
          memberApps: "o.member_apps",
          approvedClientId: "a.client_id",
          requiresDpop: "o.require_dpop",
          requireSecondFactor: "o.require_second_factor",
        });
      return rows.map(
        ({
          suspendedAt,
          allowedClients,
          memberApps,
          approvedClientId,
          requiresDpop,
          requireSecondFactor,
          ...row
        }) => ({
          ...row,
          suspended: suspendedAt !== null,
          appPolicy: { allowedClients, memberApps, isApproved: approvedClientId !== null },
          requiresDpop: Boolean(requiresDpop),
          requiresSecondFactor: Boolean(requireSecondFactor) && row.role !== "member",
        }),
      );
    },

    set: (id, enabled, actor) =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return false;
        const organization = () => trx("organizations").where({ id });
        const before = await organization().first("enterprise_authorization");
        if (Boolean(before?.enterprise_authorization) === enabled) return true;
        await organization().update({ enterprise_authorization: enabled });
        await outbox.record(trx, actor, {
          organizationId: id,
          type: "enterprise_authorization.changed",
          subject: id,
          data: { enabled },
        });
        return true;
      }),
  };
}
