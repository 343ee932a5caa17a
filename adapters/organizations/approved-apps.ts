import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { newId } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import type { DomainEvent, Outbox } from "../events/outbox.ts";
import { lockOrganization } from "../locks.ts";

export const MAX_APPROVED_APPS = 100;

/** An app that the members of an organization may authorize. Times are epoch milliseconds. */
export type ApprovedApp = {
  id: string;
  clientId: string;
  /** The name of an organization's client. Null for a client that belongs to none. */
  appName: string | null;
  appOrganization: string | null;
  /** A username, the id of a deleted user, or `operator`. */
  approvedBy: string;
  approvedAt: number;
};

export function createApprovedAppStore({ knex }: Database, outbox: Outbox) {
  return {
    list: (organizationId: string) => listApps(knex, { "a.organization_id": organizationId }),

    /** Approves an app; an app that is already approved stays as it is. Concurrent calls never exceed the limit. */
    approve: (
      organizationId: string,
      clientId: string,
      actor: Actor,
    ): Promise<ApprovedApp | "missing" | "limit"> =>
      outbox.change(actor, async ({ trx, record }) => {
        if (!(await lockOrganization(trx, organizationId))) return "missing";
        const own = { organization_id: organizationId };
        const approved = await trx("approved_apps").where(own).select("id", "client_id");
        const existing = approved.find((app) => app.client_id === clientId);
        if (!existing && approved.length >= MAX_APPROVED_APPS) return "limit";
        const id = existing?.id ?? newId("app");
        if (!existing) {
          const row = { ...own, id, client_id: clientId, approved_by: actor.id, created_at: Date.now() };
          await trx("approved_apps").insert(row);
          await record(approvalEvent("app.approved", organizationId, clientId));
        }
        const [app] = await listApps(trx, { "a.id": id });
        return app as ApprovedApp;
      }),

    /** Takes effect with the next request of the client. Returns whether there was an approval. */
    remove: (organizationId: string, id: string, actor: Actor): Promise<boolean> =>
      outbox.change(actor, async ({ trx, record }) => {
        const approval = trx("approved_apps").where({ id, organization_id: organizationId });
        const row = await approval.clone().forUpdate().first();
        // Of two concurrent calls, one deletes the row and records the event.
        if (!row || !(await approval.delete())) return false;
        await record(approvalEvent("app.approval_withdrawn", organizationId, row.client_id));
        return true;
      }),
  };
}

function listApps(knex: Knex, filter: Record<string, string>): Promise<ApprovedApp[]> {
  return knex("approved_apps as a")
    .leftJoin("users as u", "u.id", "a.approved_by")
    .leftJoin("clients as c", "c.id", "a.client_id")
    .leftJoin("organizations as o", "o.id", "c.organization_id")
    .leftJoin("client_profiles as p", "p.client_id", "c.id")
    .where(filter)
    .orderBy("a.id")
    .select({
      id: "a.id",
      clientId: "a.client_id",
      appName: knex.raw("coalesce(??, ??)", ["p.name", "o.name"]),
      appOrganization: "o.name",
      approvedBy: knex.raw("coalesce(??, ??)", ["u.username", "a.approved_by"]),
      approvedAt: "a.created_at",
    });
}

function approvalEvent(
  type: "app.approved" | "app.approval_withdrawn",
  organizationId: string,
  clientId: string,
): DomainEvent {
  return { organizationId, type, subject: clientId, data: { client_id: clientId } };
}
