import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import { type Outbox, organizationEvent } from "../events/outbox.ts";
import { lockOrganization } from "../locks.ts";
import { type Suspension, suspensionOf } from "./store.ts";

/** A suspension revokes and deletes nothing: it is checked wherever the organization or what it owns is used. */
export function createSuspensionStore({ knex }: Database, outbox: Outbox) {
  return {
    async find(id: string): Promise<Suspension | undefined> {
      const row = await knex("organizations").where({ id }).first();
      return row && suspensionOf(row);
    },

    /** Takes effect with the next request. Without a reason, that of an existing suspension is kept. */
    suspend: (id: string, reason: string | null, actor: Actor): Promise<Suspension | undefined> =>
      outbox.change(actor, async ({ trx, record }) => {
        const row = await lockOrganization(trx, id);
        if (!row) return undefined;
        const before = suspensionOf(row);
        if (before && (reason === null || reason === before.reason)) return before;
        const after: Suspension = { at: before?.at ?? Date.now(), reason };
        await trx("organizations").where({ id }).update({ suspended_at: after.at, suspended_reason: reason });
        // Those that are being attempted, and those of later events, are postponed when they are leased.
        await waitingOf(trx, id).update({ due_at: null });
        await record(organizationEvent(id, "organization.suspended", { reason }));
        return after;
      }),

    resume: (id: string, actor: Actor): Promise<boolean> =>
      outbox.change(actor, async ({ trx, record }) => {
        const row = await lockOrganization(trx, id);
        if (!row) return false;
        if (row.suspended_at === null) return true;
        await trx("organizations").where({ id }).update({ suspended_at: null, suspended_reason: null });
        await waitingOf(trx, id).update({ due_at: Date.now() });
        await record(organizationEvent(id, "organization.resumed", {}));
        return true;
      }),
  };
}

function waitingOf(trx: Knex.Transaction, organizationId: string) {
  const webhooks = trx("webhooks").where({ organization_id: organizationId }).select("id");
  return trx("deliveries")
    .whereIn("webhook_id", webhooks)
    .where({ status: "pending" })
    .whereNull("leased_by");
}
