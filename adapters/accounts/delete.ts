import type { By } from "../resources/events.ts";
import type { Database } from "./database.ts";
import { endGrants } from "./grants.ts";
import type { Journal } from "./journal.ts";
import { removeMember } from "./members.ts";
import { lockOrganization, type Organization, type Role, removeOrganization } from "./organizations.ts";
import { endAllSessions } from "./sign-ins.ts";

/** People who go. */
export type DepartureStore = {
  /**
   * Deletes the person who asks, with the organizations that nobody else belongs to. Nothing happens while the person
   * is the last owner of one that others belong to: those are what it resolves to.
   */
  depart(by: By): Promise<Pick<Organization, "id" | "name">[]>;
};

type Place = Pick<Organization, "id" | "name">;

/** The departures of a database. */
export function createDepartureStore({ transaction }: Database, journal: Journal): DepartureStore {
  return {
    async depart(by) {
      const user_id = by.actor;
      try {
        await transaction(async (trx) => {
          const places: Place[] = await trx("memberships as m")
            .join("organizations as o", "o.id", "m.organization_id")
            .where("m.user_id", user_id)
            .orderBy("o.id") // everybody locks in this order
            .select("o.id", "o.name");
          // Organizations are locked before any other row: otherwise two transactions could wait for each other.
          for (const { id } of places) await lockOrganization(trx, id);
          const needed: Place[] = [];
          for (const place of places) {
            const organizationId = place.id;
            const members: { user_id: string; role: Role }[] = await trx("memberships")
              .where({ organization_id: organizationId })
              .select("user_id", "role");
            const role = members.find((member) => member.user_id === user_id)?.role;
            if (!role) continue;
            const owners = members.filter((member) => member.role === "owner");
            if (members.length === 1) await removeOrganization(trx, journal, by, organizationId);
            else if (role === "owner" && owners.length === 1) needed.push(place);
            else await removeMember(trx, journal, by, { organizationId, userId: user_id, role });
          }
          if (needed.length > 0) throw new Needed(needed);
          await endGrants(trx, journal, by, { user_id });
          await endAllSessions(trx, user_id);
          for (const table of ["identities", "one_time_links"]) await trx(table).where({ user_id }).delete();
          await trx("users").where({ id: user_id }).delete();
        });
        return [];
      } catch (error) {
        if (!(error instanceof Needed)) throw error;
        return error.places;
      }
    },
  };
}

/** Undoes the transaction. */
class Needed extends Error {
  readonly places: Place[];
  constructor(places: Place[]) {
    super("the person is the last owner of organizations");
    this.places = places;
  }
}
