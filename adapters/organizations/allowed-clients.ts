import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import type { AllowedClients } from "../oauth/client-policy.ts";
import { lockOrganization } from "./store.ts";

/** Stores which clients besides those of organizations may act for an organization's members. */
export type AllowedClientsStore = {
  /** Resolves to undefined for an organization that doesn't exist. */
  find(organizationId: string): Promise<AllowedClients | undefined>;
  /** Resolves to the setting of each organization of a user, by its id. */
  findByUser(userId: string): Promise<ReadonlyMap<string, AllowedClients>>;
  /** Takes effect with the next request of a client. Returns false for an organization that doesn't exist. */
  set(organizationId: string, allowed: AllowedClients, actor: Actor): Promise<boolean>;
};

/** Creates the store of a database. */
export function createAllowedClientsStore(
  { knex, transaction }: Database,
  outbox: Outbox,
): AllowedClientsStore {
  return {
    async find(id) {
      const found = await knex("organizations")
        .where({ id })
        .whereNull("deleted_at")
        .first("document_clients");
      return found?.document_clients;
    },

    async findByUser(userId) {
      const rows: { id: string; allowed: AllowedClients }[] = await knex("memberships as m")
        .join("organizations as o", "o.id", "m.organization_id")
        .where("m.user_id", userId)
        .select({ id: "o.id", allowed: "o.document_clients" });
      return new Map(rows.map(({ id, allowed }) => [id, allowed]));
    },

    set: (id, allowed, actor) =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return false;
        const before = await trx("organizations").where({ id }).first("document_clients");
        if (before?.document_clients === allowed) return true;
        await trx("organizations").where({ id }).update({ document_clients: allowed });
        await outbox.record(trx, actor, {
          organizationId: id,
          type: "organization.allowed_clients_changed",
          subject: id,
          data: { from: before?.document_clients, to: allowed },
        });
        return true;
      }),
  };
}
