import type { Actor } from "../../resources/access/actor.ts";
import type { Role } from "../../resources/access/scopes.ts";
import type { Plan } from "../../resources/plans.ts";
import type { Database } from "../database/index.ts";
import type { Flag } from "../database/tables.ts";
import type { Outbox } from "../events/outbox.ts";
import type { AllowedClients } from "../oauth/client-policy.ts";
import { lockOrganization } from "./store.ts";

/** An organization that a user belongs to, with the user's role there, and which clients it allows. */
export type ManagedOrganization = {
  id: string;
  plan: Plan;
  role: Role;
  allowedClients: AllowedClients;
  requiresDpop: boolean;
};

/** Stores whether the identity provider of the service decides which apps may act for an organization's members. */
export type EnterpriseAuthorizationStore = {
  isEnabled(organizationId: string): Promise<boolean>;
  /** Lists the organizations of a user that enabled it. */
  listByUser(userId: string): Promise<ManagedOrganization[]>;
  /** Returns false for an organization that doesn't exist. */
  set(organizationId: string, enabled: boolean, actor: Actor): Promise<boolean>;
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

    async listByUser(userId) {
      const rows: (Omit<ManagedOrganization, "requiresDpop"> & { requiresDpop: Flag })[] = await knex(
        "memberships as m",
      )
        .join("organizations as o", "o.id", "m.organization_id")
        .where({ "m.user_id": userId, "o.enterprise_authorization": true })
        .orderBy("o.id")
        .select({
          id: "o.id",
          plan: "o.plan",
          role: "m.role",
          allowedClients: "o.document_clients",
          requiresDpop: "o.require_dpop",
        });
      return rows.map((row) => ({ ...row, requiresDpop: Boolean(row.requiresDpop) }));
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
