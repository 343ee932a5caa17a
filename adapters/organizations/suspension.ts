import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { lockOrganization } from "./store.ts";
import { type Suspension, suspensionOf } from "./suspension-row.ts";

/**
 * Suspends and resumes organizations. A suspension revokes and deletes nothing: it is checked wherever the organization, its
 * client or its links are used.
 */
export type SuspensionStore = {
  find(organizationId: string): Promise<Suspension | undefined>;
  /**
   * Suspends an organization from the next request on. Without a reason, that of an existing suspension is kept. Resolves to
   * undefined for an organization that doesn't exist.
   */
  suspend(organizationId: string, reason: string | null, actor: Actor): Promise<Suspension | undefined>;
  /** Ends the suspension. Returns false for an organization that doesn't exist. */
  resume(organizationId: string, actor: Actor): Promise<boolean>;
};

/** Creates the store of a database. */
export function createSuspensionStore({ knex, transaction }: Database, outbox: Outbox): SuspensionStore {
  return {
    async find(id) {
      const row = await knex("organizations").where({ id }).first("suspended_at", "suspended_reason");
      return row && suspensionOf(row);
    },

    suspend: (id, reason, actor) =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return undefined;
        const organization = () => trx("organizations").where({ id });
        const row = await organization().first("suspended_at", "suspended_reason");
        const before = row && suspensionOf(row);
        if (before && (reason === null || reason === before.reason)) return before;
        const after: Suspension = { at: before?.at ?? Date.now(), reason };
        await organization().update({ suspended_at: after.at, suspended_reason: reason });
        // Those that are being attempted, and those of later events, are postponed when they are leased.
        await waitingOf(trx, id).update({ due_at: null });
        await outbox.record(trx, actor, {
          organizationId: id,
          type: "organization.suspended",
          subject: id,
          data: { reason },
        });
        return after;
      }),

    resume: (id, actor) =>
      transaction(async (trx) => {
        if (!(await lockOrganization(trx, id))) return false;
        const suspended = trx("organizations").where({ id }).whereNotNull("suspended_at");
        if (!(await suspended.update({ suspended_at: null, suspended_reason: null }))) return true;
        await waitingOf(trx, id).update({ due_at: Date.now() });
        await outbox.record(trx, actor, {
          organizationId: id,
          type: "organization.resumed",
          subject: id,
          data: {},
        });
        return true;
      }),
  };
}

/** Queries the pending deliveries of an organization that aren't being attempted. */
function waitingOf(trx: Knex.Transaction, organizationId: string) {
  const webhooks = trx("webhooks").where({ organization_id: organizationId }).select("id");
  return trx("deliveries")
    .whereIn("webhook_id", webhooks)
    .where({ status: "pending" })
    .whereNull("leased_by");
}
