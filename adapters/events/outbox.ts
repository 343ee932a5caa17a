import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { EventType } from "../../resources/events/types.ts";
import { newId } from "../crypto/ids.ts";
import { containsColumn, containsText, type Engine } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { EventRow } from "../database/tables.ts";
import { type EventTrace, type TraceColumn, withoutTrace } from "./event-trace.ts";

/** A domain event of an organization. */
export type DomainEvent = {
  organizationId: string;
  type: EventType;
  /** The ID of the affected resource. */
  subject: string | null;
  /** The stored details; never a secret. */
  data: object;
  /** The details for webhooks, if they are more than the audit log keeps. They are stored for deliveries only. */
  delivered?: object;
};

/**
 * Records events and their webhook deliveries in the transaction of the change, so that both commit together or not at all
 * (transactional outbox).
 */
export type Outbox = {
  /** Records events and adds a delivery for every subscribed webhook; part of the caller's transaction. */
  record(trx: Knex.Transaction, actor: Actor, ...events: DomainEvent[]): Promise<void>;
  /** Calls `listener` after each commit that may have added deliveries; returns a function that removes it. */
  onCommit(listener: () => void): () => void;
  /** Notifies the listeners after a commit that added deliveries without `record`. */
  notify(): void;
  /** Reads the trace of events that are inserted without `record`. */
  trace: EventTrace;
};

const DAY_MS = 24 * 60 * 60 * 1000;
// Deliveries are retried for about three days, and their log is kept for 30 days. So is every event at least; the plan
// extends this for the audit log when the entry is chained.
const DELIVERY_MS = 30 * DAY_MS;

export const EVENT_COLUMNS =
  "id organization_id audited type actor via address subject data created_at expires_at".split(" ");

/** The row of an event that isn't chained yet. */
type NewEventRow = Omit<EventRow, "seq" | "hash" | "traceparent"> & TraceColumn;

/** Returns the row of an event. Clicks and test events are not part of the audit log. */
export function eventRow(
  actor: Actor,
  { organizationId, type, subject, data }: DomainEvent,
  trace: TraceColumn = {},
): NewEventRow {
  const now = Date.now();
  const audited = type !== "link.clicked" && type !== "webhook.test";
  return {
    id: newId("evt"),
    organization_id: organizationId,
    audited,
    type,
    actor: actor.id,
    via: actor.via ?? null,
    address: actor.address ?? null,
    subject,
    data: JSON.stringify(data),
    created_at: now,
    expires_at: now + DELIVERY_MS,
    ...trace,
  };
}

/** Adds a delivery of each event in `ids` for every enabled webhook that subscribes to it. */
export function addDeliveries(knex: Knex, engine: Engine, ids: unknown[]): Knex.Raw {
  // The subquery hides a single ID from the query planner, as in `unplannedParameter`.
  const which = ids.length === 1 ? "= (select ?)" : `in (${ids.map(() => "?").join(", ")})`;
  return knex.raw(`${deliveriesOf(engine, "events")} and e.id ${which}`, ids as string[]);
}

/**
 * Returns the SQL that adds a delivery of each event of a table or query. An endpoint that has not been verified in time gets
 * none.
 */
export function deliveriesOf(engine: Engine, events: string): string {
  const isSubscribed = containsColumn(engine, "w.events", "e.type");
  return `insert into deliveries (webhook_id, event_id, status, attempts, due_at, log, created_at, expires_at)
    select w.id, e.id, 'pending', 0, e.created_at, '[]', e.created_at, e.created_at + ${DELIVERY_MS}
    from ${events} e join webhooks w on w.organization_id = e.organization_id
    where w.enabled = true and ${isSubscribed}
      and (w.verification_expires_at is null or w.verification_expires_at > e.created_at)`;
}

/** Returns the row of an event for its deliveries, which isn't part of the audit log and expires with them. */
function deliveredRow(actor: Actor, { delivered, ...event }: DomainEvent, trace: TraceColumn): NewEventRow {
  return { ...eventRow(actor, { ...event, data: delivered ?? event.data }, trace), audited: false };
}

/** Returns whether an event gets a delivery. */
async function isSubscribed(
  trx: Knex.Transaction,
  engine: Engine,
  { organizationId, type }: DomainEvent,
): Promise<boolean> {
  const webhook = await trx("webhooks")
    .where({ organization_id: organizationId, enabled: true })
    .whereRaw(containsText(engine), ["events", type])
    .whereRaw("(verification_expires_at is null or verification_expires_at > ?)", [Date.now()])
    .first("id");
  return webhook !== undefined;
}

/** Creates the outbox of a database. */
export function createOutbox({ engine }: Pick<Database, "engine">, trace: EventTrace): Outbox {
  const listeners = new Set<() => void>();
  const notify = () => {
    for (const listener of listeners) listener();
  };
  return {
    notify,
    trace,

    async record(trx, actor, ...events) {
      if (events.length === 0) return;
      const rows: NewEventRow[] = [];
      const deliverable: string[] = [];
      for (const event of events) {
        const column = trace.of(event.type);
        const row = eventRow(actor, event, event.delivered ? withoutTrace(column) : column);
        rows.push(row);
        if (!event.delivered) deliverable.push(row.id);
        else if (await isSubscribed(trx, engine, event)) {
          const delivered = deliveredRow(actor, event, column);
          rows.push(delivered);
          deliverable.push(delivered.id);
        }
      }
      await trx("events").insert(rows);
      if (deliverable.length === 0) return;
      await addDeliveries(trx, engine, deliverable);
      trx.executionPromise.then(notify, () => {});
    },

    onCommit(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
