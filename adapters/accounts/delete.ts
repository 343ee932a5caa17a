import type { Actor } from "../../resources/access/actor.ts";
import type { Role } from "../../resources/access/scopes.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { lockOrganizationsOf } from "../locks.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { isLastOwner, removeMember } from "../organizations/members.ts";
import { type Organization, removeOrganization } from "../organizations/store.ts";
import { FACTOR_TABLES } from "./second-factors/index.ts";
import { endAllSessions } from "./sessions.ts";
import { forgetFailuresOf } from "./sign-in-failures.ts";

type OwnedOrganization = Pick<Organization, "id" | "name">;

type AccountDeletion = { deleted: OwnedOrganization[] } | { blockedBy: OwnedOrganization[] };

export function createAccountDeletionStore(outbox: Outbox) {
  return {
    /** Deletes a user, and organizations without others; refuses for the last owner of any other organization. */
    deleteAccount: (userId: string, actor: Actor): Promise<AccountDeletion> =>
      outbox.change(actor, async (change) => {
        const { trx } = change;
        const own: { organization: OwnedOrganization; role: Role; isAlone: boolean }[] = [];
        const blockedBy: OwnedOrganization[] = [];
        for (const { id, name } of await lockOrganizationsOf(trx, userId)) {
          const members = await trx("memberships").where({ organization_id: id });
          const role = members.find(({ user_id }) => user_id === userId)?.role;
          if (!role) continue; // removed before the lock
          const isAlone = members.length === 1;
          if (!isAlone && (await isLastOwner(trx, id, userId))) blockedBy.push({ id, name });
          own.push({ organization: { id, name }, role, isAlone });
        }
        if (blockedBy.length > 0) return { blockedBy };
        for (const { organization, role, isAlone } of own) {
          if (isAlone) await removeOrganization(change, organization.id);
          else await removeMember(change, { organizationId: organization.id, userId, role });
        }
        await deleteUser(change, userId);
        return { deleted: own.filter(({ isAlone }) => isAlone).map(({ organization }) => organization) };
      }),
  };
}

async function deleteUser(change: Change, user_id: string): Promise<void> {
  const { trx } = change;
  await revokeGrants(change, { user_id });
  await endAllSessions(trx, user_id);
  await forgetFailuresOf(trx, user_id);
  const tables = ["identities", "known_devices", "one_time_links", "notices", "mails"] as const;
  for (const table of [...tables, ...FACTOR_TABLES]) await trx(table).where({ user_id }).delete();
  await trx("users").where({ id: user_id }).delete();
}
