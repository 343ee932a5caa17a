import type { Knex } from "knex";
import type { EventType } from "../resources/events.ts";
import type { Database } from "./database.ts";

/** What was done, by whom, and from where. `at` is epoch milliseconds. */
export type AuditEntry = {
  id: string;
  type: EventType;
  at: number;
  actor: string;
  /** The client that acted for the person. */
  via: string | null;
  address: string | null;
  subject: string | null;
  data: Record<string, unknown>;
  /**
   * What the people and clients in it are called: id → user name, or the name of the organization whose client it is.
   * Who is gone has no name.
   */
  names: ReadonlyMap<string, string>;
};

/** Each part that is given must match; `from` is included, `to` is not. */
export type AuditFilter = { type?: string; actor?: string; from?: number; to?: number };

/** Reads the audit log. */
export type AuditStore = {
  /** Newest first; `before` is the id of the last entry of the page before. */
  list(organizationId: string, filter: AuditFilter, limit: number, before?: string): Promise<AuditEntry[]>;
};

/** The audit log of a database. */
export function createAuditStore({ knex }: Database): AuditStore {
  return {
    async list(organizationId, { type, actor, from, to }, limit, before) {
      const query = knex("events")
        .where({ organization_id: organizationId, audited: true })
        .orderBy("id", "desc")
        .limit(limit);
      if (before) query.where("id", "<", before);
      if (type) query.where({ type });
      if (actor) query.where({ actor });
      if (from !== undefined) query.where("created_at", ">=", from);
      if (to !== undefined) query.where("created_at", "<", to);
      const rows: Row[] = await query.select("id", "type", "actor", "via", "address", "subject", "data", {
        at: "created_at",
      });
      const entries = rows.map((row) => ({ ...row, data: JSON.parse(row.data) }));
      const names = await namesOf(knex, entries.flatMap(mentioned));
      return entries.map((entry) => ({ ...entry, names }));
    },
  };
}

type Row = Omit<AuditEntry, "data" | "names"> & { data: string };

/** The ids in an entry of whoever may have a name. */
function mentioned({ actor, via, data }: Omit<AuditEntry, "names">): string[] {
  const ids = [actor, via, data.user_id, data.client_id, data.reset_link_created_by];
  return ids.filter((id) => typeof id === "string");
}

async function namesOf(knex: Knex, ids: string[]): Promise<Map<string, string>> {
  const unique = [...new Set(ids)];
  const [people, clients]: { id: string; name: string }[][] = await Promise.all([
    knex("users").whereIn("id", unique).select({ id: "id", name: "username" }),
    knex("clients")
      .join("organizations", "organizations.id", "clients.organization_id")
      .whereIn("clients.id", unique)
      .select({ id: "clients.id", name: "organizations.name" }),
  ]);
  return new Map([...(people ?? []), ...(clients ?? [])].map(({ id, name }) => [id, name]));
}
