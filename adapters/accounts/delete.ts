import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { removeMember } from "../organizations/members.ts";
import { type Organization, removeOrganization } from "../organizations/store.ts";
import { lockOrganizationsOf } from "./lock-organizations.ts";
import { FACTOR_TABLES } from "./second-factors/index.ts";
import { endAllSessions } from "./sessions.ts";
import { forgetFailuresOf } from "./sign-in-failures.ts";

type OwnedOrganization = Pick<Organization, "id" | "name">;

/** A deletion: the organizations that were deleted with the account, or those that kept it from being deleted. */
export type AccountDeletion = { deleted: OwnedOrganization[] } | { blockedBy: OwnedOrganization[] };

/** Deletes accounts. */
export type AccountDeletionStore = {
  /**
   * Deletes a user's account and the organizations of which the user is the only member. Changes nothing if the user is the
   * last owner of organizations with other members.
   */
  deleteAccount(userId: string, actor: Actor): Promise<AccountDeletion>;
};

/** Creates the account deletion store of a database. */
export function createAccountDeletionStore({ transaction }: Database, outbox: Outbox): AccountDeletionStore {
  return {
    async deleteAccount(userId, actor) {
      try {
        return await transaction(async (trx) => {
          const blockedBy: OwnedOrganization[] = [];
          const deleted: OwnedOrganization[] = [];
          for (const organization of await lockOrganizationsOf(trx, userId)) {
            const left = await leaveOrganization(trx, outbox, actor, userId, organization.id);
            if (left === "last_owner") blockedBy.push(organization);
            if (left === "deleted") deleted.push(organization);
          }
          if (blockedBy.length > 0) throw new LastOwner(blockedBy);
          await deleteUser(trx, outbox, actor, userId);
          return { deleted };
        });
      } catch (error) {
        if (error instanceof LastOwner) return { blockedBy: error.organizations };
        throw error;
      }
    },
  };
}

/**
 * Removes a user from an organization, or deletes the organization if it has no other member. Changes nothing if the user is
 * its last owner.
 */
async function leaveOrganization(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  userId: string,
  organizationId: string,
): Promise<"left" | "deleted" | "last_owner"> {
  const members = await trx("memberships")
    .where({ organization_id: organizationId })
    .select("user_id", "role");
  const role = members.find((member) => member.user_id === userId)?.role;
  if (!role) return "left";
  const owners = members.filter((member) => member.role === "owner");
  if (members.length === 1) {
    await removeOrganization(trx, outbox, actor, organizationId);
    return "deleted";
  }
  if (role === "owner" && owners.length === 1) return "last_owner";
  await removeMember(trx, outbox, actor, { organizationId, userId, role });
  return "left";
}

async function deleteUser(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  user_id: string,
): Promise<void> {
  await revokeGrants(trx, outbox, actor, { user_id });
  await endAllSessions(trx, user_id);
  await forgetFailuresOf(trx, user_id);
  const tables = ["identities", "known_devices", "one_time_links", "notices", "mails"] as const;
  for (const table of [...tables, ...FACTOR_TABLES]) await trx(table).where({ user_id }).delete();
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
