import type { RequestListener } from "node:http";
import type { StatementObserver } from "../../adapters/database/statement-observer.ts";
import type { TraceOutgoing } from "../../resources/outbound/outgoing-trace.ts";
import type { Send } from "../../resources/webhooks/send.ts";

/** What a finished request tells its span. The route is a pattern, because a path may contain a secret. */
export type TracedRequest = { requestId: string; method: string; route: string; status: number };

/**
 * What another server learns of the trace. `everything` is for servers of the same operator. Those that the operator or an
 * organization chose get the `traceparent`, which contains random IDs; the `tracestate` stays here (W3C Trace Context,
 * “Information exposure”). Those that a request names get nothing.
 */
export type PassedOn = "everything" | "traceparent" | "nothing";

/** Traces what a process does. Spans never contain paths, headers, bodies or values of statements. */
export type Tracing = {
  /** Returns a listener whose requests have a span, which continues the trace of the caller. */
  traceRequests(listener: RequestListener): RequestListener;
  /** Names the span of the current request. */
  describeRequest(request: TracedRequest): void;
  /** Adds a span for each statement of a request. */
  statementObserver: StatementObserver;
  /** Returns a function that sends with a span, and passes the trace on to the endpoint. */
  traceDeliveries(send: Send): Send;
  /** Returns a function that runs requests to other servers with a span. */
  traceOutgoing(passedOn: PassedOn): TraceOutgoing;
  /** Returns the `traceparent` of the current request, if its trace is recorded. */
  currentTraceparent(): string | undefined;
};

/** Sends traces by the OpenTelemetry protocol. */
export type Telemetry = {
  tracing: Tracing;
  /** Sends what has not been sent yet. */
  stop(): Promise<void>;
};
