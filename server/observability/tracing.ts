import type { RequestListener } from "node:http";
import type { StatementObserver } from "../../adapters/database/statement-observer.ts";
import type { Send } from "../../resources/webhooks/send.ts";

/** What a finished request tells its span. The route is a pattern, because a path may contain a secret. */
export type TracedRequest = { requestId: string; method: string; route: string; status: number };

/** Traces what a process does. Spans never contain URLs, headers, bodies or values of statements. */
export type Tracing = {
  /** Returns a listener whose requests have a span, which continues the trace of the caller. */
  traceRequests(listener: RequestListener): RequestListener;
  /** Names the span of the current request. */
  describeRequest(request: TracedRequest): void;
  /** Adds a span for each statement of a request. */
  statementObserver: StatementObserver;
  /** Returns a function that sends with a span, and passes the trace on to the endpoint. */
  traceDeliveries(send: Send): Send;
  /** Returns the headers that pass the trace of the current request on to another server. */
  outgoingHeaders(): Record<string, string>;
  /** Returns the `traceparent` of the current request, if its trace is recorded. */
  currentTraceparent(): string | undefined;
};

/** Sends traces and metrics by the OpenTelemetry protocol. */
export type Telemetry = {
  tracing?: Tracing;
  /** Sends what has not been sent yet. */
  stop(): Promise<void>;
};
