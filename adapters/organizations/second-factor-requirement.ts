import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { lockOrganization } from "./store.ts";

/** Stores which organizations require a second factor of their owners and admins. */
export type SecondFactorRequirementStore = {
  isRequired(organizationId: string): Promise<boolean>;
  /** Lists the organizations that require one of this user, who is an owner or admin there. */
  listByUser(userId: string): Promise<string[]>;
  /** Takes effect with the next request. Returns false for an organization that doesn't exist. */
  set(organizationId: string, required: boolean, actor: Actor): Promise<boolean>;
};

/** Creates the store of a database. */
export function createSecondFactorRequirementStore(
  { knex, transaction }: Database,
  outbox: Outbox,
): SecondFactorRequirementStore {
  const store: SecondFactorRequirementStore = {
    async isRequired(id) {
      const found = await knex("organizations")
        .where({ id })
        .whereNull("deleted_at")
        .first("require_second_factor");
      return Boolean(found?.require_second_factor);
    },

    listByUser: (userId) =>
      knex("memberships as m")
        .join("organizations as o", "o.id", "m.organization_id")
        .where({ "m.user_id": userId, "o.require_second_factor": true })
        .whereIn("m.role", ["owner", "admin"])
        .pluck("o.id"),

    set: (id, required, actor) =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return false;
        const before = await trx("organizations").where({ id }).first("require_second_factor");
        if (Boolean(before?.require_second_factor) === required) return true;
        await trx("organizations").where({ id }).update({ require_second_factor: required });
        await outbox.record(trx, actor, {
          organizationId: id,
          type: "organization.second_factor_required",
          subject: id,
          data: { required },
        });
        return true;
      }),
  };
  return store;
}
