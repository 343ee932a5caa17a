import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { DomainEvent, Outbox } from "../events/outbox.ts";
import type { AllowedClients, AppPolicy, MemberApps } from "../oauth/client-policy.ts";
import { lockOrganization } from "./store.ts";

/** Which apps may act for an organization: by their kind, and for members by approval. */
export type AppPolicySettings = { allowedClients: AllowedClients; memberApps: MemberApps };

/** Stores which apps may act for an organization's members. */
export type AppPolicyStore = {
  /** Resolves to undefined for an organization that doesn't exist. */
  find(organizationId: string): Promise<AppPolicySettings | undefined>;
  /** Resolves to the policy of each organization of a user on a client, by the organization's id. */
  findByUser(userId: string, clientId: string): Promise<ReadonlyMap<string, AppPolicy>>;
  /** Takes effect with the next request of a client. Returns false for an organization that doesn't exist. */
  set(organizationId: string, changes: Partial<AppPolicySettings>, actor: Actor): Promise<boolean>;
};

/** Creates the store of a database. */
export function createAppPolicyStore({ knex, transaction }: Database, outbox: Outbox): AppPolicyStore {
  return {
    find: (id) => settingsOf(knex, id),

    async findByUser(userId, clientId) {
      const rows: (AppPolicySettings & { id: string; approvedClientId: string | null })[] = await knex(
        "memberships as m",
      )
        .join("organizations as o", "o.id", "m.organization_id")
        .leftJoin("approved_apps as a", (join) =>
          join.on("a.organization_id", "o.id").andOnVal("a.client_id", clientId),
        )
        .where("m.user_id", userId)
        .select({
          id: "o.id",
          allowedClients: "o.document_clients",
          memberApps: "o.member_apps",
          approvedClientId: "a.client_id",
        });
      return new Map(
        rows.map(({ id, approvedClientId, ...settings }) => [
          id,
          { ...settings, isApproved: approvedClientId !== null },
        ]),
      );
    },

    set: (id, changes, actor) =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return false;
        const before = (await settingsOf(trx, id)) as AppPolicySettings;
        const after = { ...before, ...changes };
        await trx("organizations")
          .where({ id })
          .update({ document_clients: after.allowedClients, member_apps: after.memberApps });
        await outbox.record(trx, actor, ...changesOf(id, before, after));
        return true;
      }),
  };
}

async function settingsOf(knex: Knex, id: string): Promise<AppPolicySettings | undefined> {
  const found = await knex("organizations")
    .where({ id })
    .whereNull("deleted_at")
    .first("document_clients", "member_apps");
  return found && { allowedClients: found.document_clients, memberApps: found.member_apps };
}

function changesOf(
  organizationId: string,
  before: AppPolicySettings,
  after: AppPolicySettings,
): DomainEvent[] {
  const types = {
    allowedClients: "organization.allowed_clients_changed",
    memberApps: "organization.member_apps_changed",
  } as const;
  return (["allowedClients", "memberApps"] as const)
    .filter((name) => before[name] !== after[name])
    .map((name) => ({
      organizationId,
      type: types[name],
      subject: organizationId,
      data: { from: before[name], to: after[name] },
    }));
}
