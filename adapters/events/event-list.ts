import type { DeliveredEvent, EventList } from "../../resources/webhooks/types.ts";
import { idBound } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import type { EventRow } from "../database/tables.ts";

// How many entries of the audit log a page looks at, of which the list may have few or none. Takes milliseconds.
const SCANNED = 10_000;
// Links have up to 60 KB, and 100 of them would take 60 ms.
const PAGE_LENGTH = 256 * 1024;
// Longer than between an event and its place in the audit log, where a later one may come first.
const OVERLAP_MS = 60 * 60 * 1000;

/**
 * Creates the list of events, in the order of the audit log. Unlike IDs, places in it become visible in their order: one
 * process at a time assigns them, to events that are committed.
 */
export function createEventList({ knex }: Pick<Database, "knex">): EventList {
  /** Returns the place of an entry that is older than all since a time. */
  async function placeBefore(organization_id: string, since: number): Promise<number> {
    const entry = await knex("events")
      .where({ organization_id, audited: true })
      .where("id", "<", idBound("evt", since - OVERLAP_MS))
      .orderBy("id", "desc")
      .first("seq");
    return entry?.seq ?? 0;
  }

  return {
    async end(organization_id) {
      const head = await knex("audit_chains").where({ organization_id }).first("seq");
      return head?.seq ?? 0;
    },

    async read(organizationId, { after, end, since, types, limit }) {
      const start = Math.max(after, await placeBefore(organizationId, since));
      const last = Math.min(end, start + SCANNED);
      const rows: Row[] = await knex("events as e")
        .leftJoin("events as c", "c.id", "e.copy_id")
        .where("e.organization_id", organizationId)
        .where("e.seq", ">", start)
        .where("e.seq", "<=", last)
        .where("e.created_at", ">", since)
        .whereIn("e.type", types)
        // An earlier version stored the data of an updated link for webhooks only.
        .whereRaw("(c.id is not null or (e.copy_id is null and e.type <> 'link.updated'))")
        .orderBy("e.seq")
        .limit(limit)
        .select("e.seq", "e.type", "e.created_at", knex.raw("coalesce(c.id, e.id) as id"))
        .select(knex.raw("coalesce(c.data, e.data) as data"));
      const page = firstOf(rows);
      const isComplete = page.length === rows.length && rows.length < limit;
      return { events: page.map(toEvent), position: isComplete ? last : (page.at(-1) as Row).seq };
    },
  };
}

type Row = Pick<EventRow, "id" | "data" | "created_at"> & { type: DeliveredEvent["type"]; seq: number };

/** Returns the first events that fit on a page, at least one. */
function firstOf(rows: Row[]): Row[] {
  let length = 0;
  const end = rows.findIndex(({ data }) => {
    length += data.length;
    return length > PAGE_LENGTH;
  });
  return end === -1 ? rows : rows.slice(0, Math.max(1, end));
}

function toEvent({ id, type, data, created_at }: Row): DeliveredEvent {
  return { id, type, data: JSON.parse(data), createdAt: created_at };
}
