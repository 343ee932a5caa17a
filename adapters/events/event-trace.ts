import type { EventType, WebhookEvent } from "../../resources/events/types.ts";

/** Returns the `traceparent` (W3C Trace Context) of the current request; undefined if its trace isn't recorded. */
export type CurrentTraceparent = () => string | undefined;

/** The column of an event with the trace of its cause. Absent unless requests are traced. */
export type TraceColumn = { traceparent?: string | null };

/** Reads the trace that a new event belongs to. */
export type EventTrace = {
  /** The names of the columns that `of` returns. */
  columns: (keyof TraceColumn)[];
  /** Returns the column of an event that the current request causes. */
  of(type: EventType): TraceColumn;
};

// Other events aren't delivered, and some of them sum up what several requests did.
const DELIVERED: Record<WebhookEvent, true> = {
  "link.created": true,
  "link.updated": true,
  "link.deleted": true,
  "link.clicked": true,
  "client.secret_rotated": true,
  "authorization.granted": true,
  "authorization.revoked": true,
  "token.replay_detected": true,
  "webhook.test": true,
};
const NO_COLUMN: TraceColumn = {};
const NO_TRACE: TraceColumn = { traceparent: null };

/** Creates the reader of a process; without `current`, events have no trace, and statements don't mention it. */
export function createEventTrace(current: CurrentTraceparent | undefined): EventTrace {
  if (!current) return { columns: [], of: () => NO_COLUMN };
  return {
    columns: ["traceparent"],
    of(type) {
      const traceparent = Object.hasOwn(DELIVERED, type) ? current() : undefined;
      return traceparent === undefined ? NO_TRACE : { traceparent };
    },
  };
}

/** Returns the column of an event that several requests caused: the trace of one of them would be wrong for the others. */
export function withoutTrace(column: TraceColumn): TraceColumn {
  return column.traceparent ? NO_TRACE : column;
}
