import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { lockOrganization } from "./store.ts";

/** Stores which organizations require DPoP: tokens that act for them, or are their client's, must be bound to a key. */
export type DpopRequirementStore = {
  isRequired(organizationId: string): Promise<boolean>;
  /** Takes effect with the next request. Returns false for an organization that doesn't exist. */
  set(organizationId: string, required: boolean, actor: Actor): Promise<boolean>;
};

/** Creates the store of a database. */
export function createDpopRequirementStore(
  { knex, transaction }: Database,
  outbox: Outbox,
): DpopRequirementStore {
  return {
    async isRequired(id) {
      const found = await knex("organizations").where({ id }).whereNull("deleted_at").first("require_dpop");
      return Boolean(found?.require_dpop);
    },

    set: (id, required, actor) =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return false;
        const before = await trx("organizations").where({ id }).first("require_dpop");
        if (Boolean(before?.require_dpop) === required) return true;
        await trx("organizations").where({ id }).update({ require_dpop: required });
        await outbox.record(trx, actor, {
          organizationId: id,
          type: "organization.dpop_requirement_changed",
          subject: id,
          data: { required },
        });
        return true;
      }),
  };
}
