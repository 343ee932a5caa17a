import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { WEBHOOK_EVENTS } from "../../resources/events/delivered-events.ts";
import type { EventType } from "../../resources/events/types.ts";
import { newId } from "../crypto/ids.ts";
import { containsText, type Engine } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { EventRow } from "../database/tables/events.ts";
import { RECORD_COLUMNS } from "./chain-record.ts";

/** Returns the `traceparent` (W3C Trace Context) of the current request; undefined if its trace isn't recorded. */
export type CurrentTraceparent = () => string | undefined;

/** The column of an event with the trace of its cause. Absent unless requests are traced. */
export type TraceColumn = { traceparent?: string | null };

// Other events aren't delivered, and some of them sum up what several requests did.
const DELIVERED: ReadonlySet<EventType> = new Set(WEBHOOK_EVENTS);
const NO_COLUMN: TraceColumn = {};
const NO_TRACE: TraceColumn = { traceparent: null };

/** Creates the reader of traces; without `current`, events have no trace, and statements don't mention it. */
function createEventTrace(current: CurrentTraceparent | undefined) {
  return {
    columns: current ? ["traceparent"] : [],
    of(type: EventType): TraceColumn {
      if (!current) return NO_COLUMN;
      const traceparent = DELIVERED.has(type) ? current() : undefined;
      return traceparent === undefined ? NO_TRACE : { traceparent };
    },
  };
}

/** For an event that several requests caused: the trace of one of them would be wrong for the others. */
export function withoutTrace(column: TraceColumn): TraceColumn {
  return column.traceparent ? NO_TRACE : column;
}

export type DomainEvent = {
  organizationId: string;
  type: EventType;
  subject: string | null;
  /** The stored details; never a secret. */
  data: object;
  /** The details for webhooks and the list of events, if they are more than the audit log keeps. */
  delivered?: object;
};

/** Describes what happened to an organization as a whole. */
export function organizationEvent(id: string, type: EventType, data: object): DomainEvent {
  return { organizationId: id, type, subject: id, data };
}

/** A transaction of an actor, with the events that commit with it. */
export type Change = {
  trx: Knex.Transaction;
  actor: Actor;
  /** Records events and adds a delivery for every subscribed webhook. */
  record(...events: DomainEvent[]): Promise<void>;
};

/** Transactional outbox: events and deliveries commit together with the change, or not at all. */
export type Outbox = ReturnType<typeof createOutbox>;

const DAY_MS = 24 * 60 * 60 * 1000;
// Deliveries are retried for three days and logged for 30; the plan extends this when the entry is chained.
const DELIVERY_MS = 30 * DAY_MS;

export const EVENT_COLUMNS = [...RECORD_COLUMNS, "audited", "expires_at"];

type NewEventRow = Omit<EventRow, "seq" | "hash" | "copy_id" | "traceparent"> & TraceColumn;

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
  // The subquery hides a single ID from the query planner, as `createPrepare` does.
  const which = ids.length === 1 ? "= (select ?)" : `in (${ids.map(() => "?").join(", ")})`;
  return knex.raw(`${deliveriesOf(engine, "events")} and e.id ${which}`, ids as string[]);
}

/** An endpoint that has not been verified in time gets no delivery. */
export function deliveriesOf(engine: Engine, events: string): string {
  const isSubscribed = containsText(engine, "w.events", "e.type");
  return `insert into deliveries (webhook_id, event_id, type, status, attempts, due_at, log, created_at, expires_at)
    select w.id, e.id, e.type, 'pending', 0, e.created_at, '[]', e.created_at, e.created_at + ${DELIVERY_MS}
    from ${events} e join webhooks w on w.organization_id = e.organization_id
    where w.enabled = true and ${isSubscribed}
      and (w.verification_expires_at is null or w.verification_expires_at > e.created_at)`;
}

export function createOutbox(
  { engine, transaction }: Pick<Database, "engine" | "transaction">,
  currentTraceparent: CurrentTraceparent | undefined,
) {
  const trace = createEventTrace(currentTraceparent);
  const listeners = new Set<() => void>();
  let changed = (_subjects: string[]): void => {};
  const notify = () => {
    for (const listener of listeners) listener();
  };

  async function record(trx: Knex.Transaction, actor: Actor, events: DomainEvent[]): Promise<void> {
    if (events.length === 0) return;
    const rows: (NewEventRow & Pick<EventRow, "copy_id">)[] = [];
    const deliverable: string[] = [];
    for (const { delivered, ...event } of events) {
      const column = trace.of(event.type);
      const row = { ...eventRow(actor, event, delivered ? withoutTrace(column) : column), copy_id: null };
      if (!delivered) {
        rows.push(row);
        deliverable.push(row.id);
        continue;
      }
      // Isn't part of the audit log, and expires with its deliveries.
      const id = newId("evt");
      const copy = { ...row, ...column, id, audited: false, data: JSON.stringify(delivered) };
      rows.push({ ...row, copy_id: id }, copy);
      deliverable.push(id);
    }
    await trx("events").insert(rows);
    await addDeliveries(trx, engine, deliverable);
    const subjects = events.flatMap(({ subject }) => subject ?? []);
    // Whether a commit that failed took effect may be unknown.
    trx.executionPromise.finally(() => changed(subjects)).then(notify, () => {});
  }

  return {
    /** Notifies the listeners after a commit that added deliveries without `record`. */
    notify,
    trace,

    /** Runs `work` in a transaction of an actor: again after a conflict, so it must have no other side effects. */
    change: <T>(
      actor: Actor,
      work: (change: Change) => Promise<T>,
      commit?: { isDurable: boolean },
    ): Promise<T> =>
      transaction((trx) => work({ trx, actor, record: (...events) => record(trx, actor, events) }), commit),

    /** Calls the listener with what was changed, or may have been, after the end of its transaction. */
    onChange(listener: typeof changed): void {
      changed = listener;
    },

    /** Calls `listener` after each commit that may have added deliveries; returns a function that removes it. */
    onCommit(listener: () => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
