import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { lockOrganizationsOf } from "../locks.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { isLastOwner } from "../organizations/last-owner.ts";
import { removeMember } from "../organizations/members.ts";
import { type Organization, removeOrganization } from "../organizations/store.ts";
import { FACTOR_TABLES } from "./second-factors/index.ts";
import { endAllSessions } from "./sessions.ts";
import { forgetFailuresOf } from "./sign-in-failures.ts";

type OwnedOrganization = Pick<Organization, "id" | "name">;

type AccountDeletion = { deleted: OwnedOrganization[] } | { blockedBy: OwnedOrganization[] };

export function createAccountDeletionStore({ transaction }: Database, outbox: Outbox) {
  async function leave(trx: Knex.Transaction, actor: Actor, organizationId: string, userId: string) {
    const members = await trx("memberships")
      .where({ organization_id: organizationId })
      .select("user_id", "role");
    const role = members.find((member) => member.user_id === userId)?.role;
    if (!role) return "left";
    if (members.length === 1) {
      await removeOrganization(trx, outbox, actor, organizationId);
      return "deleted";
    }
    if (await isLastOwner(trx, organizationId, userId)) return "last_owner";
    await removeMember(trx, outbox, actor, { organizationId, userId, role });
    return "left";
  }

  async function deleteUser(trx: Knex.Transaction, actor: Actor, user_id: string): Promise<void> {
    await revokeGrants(trx, outbox, actor, { user_id });
    await endAllSessions(trx, user_id);
    await forgetFailuresOf(trx, user_id);
    const tables = ["identities", "known_devices", "one_time_links", "notices", "mails"] as const;
    for (const table of [...tables, ...FACTOR_TABLES]) await trx(table).where({ user_id }).delete();
    await trx("users").where({ id: user_id }).delete();
  }

  return {
    /** Deletes a user, and organizations without others; refuses for the last owner of any other organization. */
    async deleteAccount(userId: string, actor: Actor): Promise<AccountDeletion> {
      try {
        return await transaction(async (trx) => {
          const blockedBy: OwnedOrganization[] = [];
          const deleted: OwnedOrganization[] = [];
          for (const organization of await lockOrganizationsOf(trx, userId)) {
            const left = await leave(trx, actor, organization.id, userId);
            if (left === "last_owner") blockedBy.push(organization);
            if (left === "deleted") deleted.push(organization);
          }
          if (blockedBy.length > 0) throw new LastOwner(blockedBy);
          await deleteUser(trx, actor, userId);
          return { deleted };
        });
      } catch (error) {
        if (error instanceof LastOwner) return { blockedBy: error.organizations };
        throw error;
      }
    },
  };
}

/** Thrown to roll back the transaction. */
class LastOwner extends Error {
  readonly organizations: OwnedOrganization[];
  constructor(organizations: OwnedOrganization[]) {
    super("the user is the last owner of organizations with other members");
    this.organizations = organizations;
  }
}
