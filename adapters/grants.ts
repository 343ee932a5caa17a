import type { Plan } from "../resources/plans.ts";
import type { Database } from "./database.ts";

/** Whether a grant may be used now: by the person, and by the organization acted for. */
export type GrantStanding = { organizationId: string; isMember: boolean; plan: Plan };

/** What the service itself asks of grants. */
export type GrantStore = {
  /** Nothing for a grant that has ended, or one that is bound to no organization. */
  standing(grantId: string): Promise<GrantStanding | undefined>;
};

/** The grants of a database. */
export function createGrantStore({ knex }: Database): GrantStore {
  return {
    async standing(grantId) {
      const row = await knex("grants as g")
        .join("organizations as o", "o.id", "g.organization_id")
        .leftJoin("memberships as m", (join) =>
          join.on("m.user_id", "g.user_id").andOn("m.organization_id", "g.organization_id"),
        )
        .where("g.id", grantId)
        .whereNull("g.revoked_at")
        .first({ organizationId: "o.id", memberId: "m.user_id", plan: "o.plan" });
      return row && { organizationId: row.organizationId, isMember: row.memberId !== null, plan: row.plan };
    },
  };
}
