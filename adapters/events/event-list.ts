import type { DeliveredEvent, EventList } from "../../resources/webhooks/types.ts";
import type { Database } from "../database/index.ts";
import type { EventRow } from "../database/tables/events.ts";
import { firstOf } from "./audit-chain.ts";

// How many entries of the audit log a page looks at, of which the list may have few or none. Takes up to 20 ms.
const SCANNED = 5000;
// Finding an old position closer than this takes longer than looking at the entries.
const CLOSE = 500;
// Links have up to 60 KB, and 100 of them would take 60 ms.
const PAGE_LENGTH = 256 * 1024;
// Longer than between an event and its place in the audit log, where a later one may come first.
const OVERLAP_MS = 60 * 60 * 1000;

/**
 * Creates the list of events, in the order of the audit log. Unlike IDs, places in it become visible in their order: one
 * process at a time assigns them, to events that are committed.
 */
export function createEventList({ knex }: Pick<Database, "knex">): EventList {
  /** Returns whether an entry was purged, or so old that no later one happened since a time. */
  async function isBefore(since: number, organization_id: string, seq: number): Promise<boolean> {
    const entry = await knex("events").where({ organization_id, seq }).first("created_at");
    return entry === undefined || entry.created_at < since - OVERLAP_MS;
  }

  /** Skips older entries, without an index of their times: the log is nearly sorted by it. */
  async function startOf(organizationId: string, { after, end, since }: Range): Promise<number> {
    let [start, later] = [after, end];
    if (!(await isBefore(since, organizationId, after + 1))) return after;
    while (later - start > CLOSE) {
      const middle = Math.floor((start + later) / 2);
      if (await isBefore(since, organizationId, middle)) start = middle;
      else later = middle;
    }
    return start;
  }

  return {
    async end(organization_id) {
      const head = await knex("audit_chains").where({ organization_id }).first("seq");
      return head?.seq ?? 0;
    },

    async read(organizationId, { types, limit, ...range }) {
      const { end, since } = range;
      const start = await startOf(organizationId, range);
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
      const page = firstOf(rows, PAGE_LENGTH, ({ data }) => data.length);
      const isComplete = page.length === rows.length && rows.length < limit;
      return { events: page.map(toEvent), position: isComplete ? last : (page.at(-1) as Row).seq };
    },
  };
}

type Range = { after: number; end: number; since: number };
type Row = Pick<EventRow, "id" | "data" | "created_at"> & { type: DeliveredEvent["type"]; seq: number };

function toEvent({ id, type, data, created_at }: Row): DeliveredEvent {
  return { id, type, data: JSON.parse(data), createdAt: created_at };
}
