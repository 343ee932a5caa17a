import type { Knex } from "knex";
import type { EventType } from "../../resources/events/types.ts";
import type { Database } from "../database/index.ts";

/** An entry of the audit log. `at` is epoch milliseconds. */
export type AuditEntry = {
  id: string;
  type: EventType;
  at: number;
  /** The ID of the user or client, or `operator` or `system`. */
  actor: string;
  /** The ID of the client that acted for the user. */
  via: string | null;
  /** The IP address of the request. */
  address: string | null;
  /** The ID of the affected resource. */
  subject: string | null;
  /** The details as they are stored. */
  data: Record<string, unknown>;
  /**
   * The names of the users and clients in the entry, by ID: the username, or the name of the client's organization. Deleted
   * users and clients have no name.
   */
  names: ReadonlyMap<string, string>;
};

/** Entries must match every given filter. `from` is inclusive, `to` exclusive. */
export type AuditFilter = { type?: string; actor?: string; from?: number; to?: number };

export type AuditStore = {
  /** Lists entries, newest first; `before` is the ID of the previous page's last entry. */
  list(organizationId: string, filter: AuditFilter, limit: number, before?: string): Promise<AuditEntry[]>;
};

/** Creates the audit log store of a database. */
export function createAuditStore({ knex }: Database): AuditStore {
  return {
    async list(organizationId, { type, actor, from, to }, limit, before) {
      const query = knex("events")
        .where({ organization_id: organizationId, audited: true })
        .orderBy("id", "desc")
        .limit(limit);
      if (before) query.where("id", "<", before);
      if (type) query.where("type", type);
      if (actor) query.where({ actor });
      if (from !== undefined) query.where("created_at", ">=", from);
      if (to !== undefined) query.where("created_at", "<", to);
      const rows: Row[] = await query.select("id", "type", "actor", "via", "address", "subject", "data", {
        at: "created_at",
      });
      const entries = rows.map((row) => ({ ...row, data: JSON.parse(row.data) }));
      const names = await findNames(knex, entries.flatMap(namedIdsOf));
      return entries.map((entry) => ({ ...entry, names }));
    },
  };
}

type Row = Omit<AuditEntry, "data" | "names"> & { data: string };

/** Returns the IDs in an entry that may have a name. */
function namedIdsOf({ actor, via, data }: Omit<AuditEntry, "names">): string[] {
  const ids = [actor, via, data.user_id, data.client_id, data.reset_link_created_by];
  return ids.filter((id) => typeof id === "string");
}

async function findNames(knex: Knex, ids: string[]): Promise<Map<string, string>> {
  const unique = [...new Set(ids)];
  const [users, clients]: { id: string; name: string }[][] = await Promise.all([
    knex("users").whereIn("id", unique).select({ id: "id", name: "username" }),
    knex("clients")
      .join("organizations", "organizations.id", "clients.organization_id")
      .whereIn("clients.id", unique)
      .select({ id: "clients.id", name: "organizations.name" }),
  ]);
  return new Map([...(users ?? []), ...(clients ?? [])].map(({ id, name }) => [id, name]));
}
