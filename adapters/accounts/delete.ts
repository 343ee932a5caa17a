import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { removeMember } from "../organizations/members.ts";
import { lockOrganization, type Organization, removeOrganization } from "../organizations/store.ts";
import { endAllSessions } from "./sessions.ts";

type OwnedOrganization = Pick<Organization, "id" | "name">;

/** Deletes accounts. */
export type AccountDeletionStore = {
  /**
   * Deletes the actor's account and the organizations of which the actor is the only member. If the actor is the last
   * owner of organizations with other members, changes nothing and resolves to those; otherwise to an empty list.
   */
  deleteAccount(actor: Actor): Promise<OwnedOrganization[]>;
};

/** Creates the account deletion store of a database. */
export function createAccountDeletionStore({ transaction }: Database, outbox: Outbox): AccountDeletionStore {
  return {
    async deleteAccount(actor) {
      try {
        await transaction(async (trx) => {
          const organizations = await lockOrganizationsOf(trx, actor.id);
          const blocking: OwnedOrganization[] = [];
          for (const organization of organizations) {
            if (!(await leaveOrganization(trx, outbox, actor, organization.id))) blocking.push(organization);
          }
          if (blocking.length > 0) throw new LastOwner(blocking);
          await deleteUser(trx, outbox, actor);
        });
        return [];
      } catch (error) {
        if (error instanceof LastOwner) return error.organizations;
        throw error;
      }
    },
  };
}

/** Locks the user's organizations in id order, before any other row, so two transactions can't wait for each other. */
async function lockOrganizationsOf(trx: Knex.Transaction, userId: string): Promise<OwnedOrganization[]> {
  const organizations: OwnedOrganization[] = await trx("memberships as m")
    .join("organizations as o", "o.id", "m.organization_id")
    .where("m.user_id", userId)
    .orderBy("o.id")
    .select("o.id", "o.name");
  for (const { id } of organizations) await lockOrganization(trx, id);
  return organizations;
}

/**
 * Removes the actor from an organization, or the organization if it has no other member. Returns false and changes
 * nothing if the actor is its last owner.
 */
async function leaveOrganization(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  organizationId: string,
): Promise<boolean> {
  const members = await trx("memberships")
    .where({ organization_id: organizationId })
    .select("user_id", "role");
  const role = members.find((member) => member.user_id === actor.id)?.role;
  if (!role) return true;
  const owners = members.filter((member) => member.role === "owner");
  if (members.length === 1) await removeOrganization(trx, outbox, actor, organizationId);
  else if (role === "owner" && owners.length === 1) return false;
  else await removeMember(trx, outbox, actor, { organizationId, userId: actor.id, role });
  return true;
}

async function deleteUser(trx: Knex.Transaction, outbox: Outbox, actor: Actor): Promise<void> {
  const user_id = actor.id;
  await revokeGrants(trx, outbox, actor, { user_id });
  await endAllSessions(trx, user_id);
  for (const table of ["identities", "one_time_links"] as const) await trx(table).where({ user_id }).delete();
  await trx("users").where({ id: user_id }).delete();
}

/** Thrown to roll back the transaction. */
class LastOwner extends Error {
  readonly organizations: OwnedOrganization[];
  constructor(organizations: OwnedOrganization[]) {
    super("the user is the last owner of organizations with other members");
    this.organizations = organizations;
  }
}
