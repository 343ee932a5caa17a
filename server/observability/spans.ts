import type { IncomingMessage, ServerResponse } from "node:http";
import {
  type Context,
  type ContextManager,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import type { Send } from "../../resources/webhooks/send.ts";
import { methodOf } from "./http-method.ts";
import { createTraceOutgoing } from "./outgoing-spans.ts";
import type { Tracing } from "./tracing.ts";

// Health checks would be most of the traces of an idle service.
const PROBES = /^\/(healthz|readyz|metrics)(\?|$)/;
// A long list of placeholders says no more.
const MAX_SQL = 2000;
// The parts of a transaction and of a wait have no span of their own.
const WITHOUT_SPAN = new Set(["acquire", "transaction"]);

const propagator = new W3CTraceContextPropagator();
const fromHeaders = {
  keys: (headers: IncomingMessage["headers"]) => Object.keys(headers),
  get: (headers: IncomingMessage["headers"], name: string) => headers[name],
};
const toHeaders = {
  set(headers: Record<string, string>, name: string, value: string) {
    headers[name] = value;
  },
};

/** Creates the spans of a process. Names follow the semantic conventions of OpenTelemetry. */
export function createTracing(tracer: Tracer, contexts: ContextManager): Tracing {
  function headersOf(context: Context): Record<string, string> {
    const headers: Record<string, string> = {};
    propagator.inject(context, headers, toHeaders);
    return headers;
  }

  function startRequest(request: IncomingMessage, response: ServerResponse): Context {
    const parent = propagator.extract(ROOT_CONTEXT, request.headers, fromHeaders);
    const { name, attribute } = methodOf(request.method ?? "");
    const attributes = { "http.request.method": attribute };
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
    response.once("close", () => span.end());
    return trace.setSpan(parent, span);
  }

  return {
    traceRequests: (listener) =>
      function traceRequest(request, response) {
        if (PROBES.test(request.url ?? "")) return listener(request, response);
        return contexts.with(startRequest(request, response), () => listener(request, response));
      },

    describeRequest({ requestId, method, route, status }) {
      const span = trace.getSpan(contexts.active());
      if (!span) return;
      span.updateName(`${methodOf(method).name} ${route}`);
      span.setAttributes({
        "http.route": route,
        "http.response.status_code": status,
        "linkgate.request_id": requestId,
      });
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    },

    statementObserver: {
      begin(operation, sql) {
        const context = contexts.active();
        // Work in the background would be traces of single statements.
        if (WITHOUT_SPAN.has(operation) || !trace.getSpan(context)?.isRecording()) return () => {};
        const attributes = { "db.operation.name": operation, "db.query.text": sql.slice(0, MAX_SQL) };
        const span = tracer.startSpan(
          operation.toUpperCase(),
          { kind: SpanKind.CLIENT, attributes },
          context,
        );
        return (error) => {
          // Not its message, which may contain values.
          if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        };
      },
    },

    traceDeliveries:
      (send: Send): Send =>
      async (url, headers, body, signal) => {
        // Not a part of the trace in which the queue happened to be read, but of that which caused the event.
        const cause = propagator.extract(ROOT_CONTEXT, headers, fromHeaders);
        const context = trace.getSpanContext(cause);
        const attributes = {
          "http.request.method": "POST",
          "messaging.operation.type": "send",
          "messaging.message.id": headers["webhook-id"] ?? "",
        };
        // The conventions for messaging ask for a link, and allow it to be the parent as well if there is a single message.
        const options = { kind: SpanKind.PRODUCER, attributes, links: context ? [{ context }] : [] };
        const span = tracer.startSpan("deliver webhook", options, cause);
        const passedOn = headersOf(trace.setSpan(cause, span));
        const response = await send(url, { ...headers, ...passedOn }, body, signal);
        const { status } = response;
        if (status !== undefined) span.setAttribute("http.response.status_code", status);
        if (status === undefined || status >= 300) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
        return response;
      },

    traceOutgoing: (passedOn) =>
      createTraceOutgoing({
        tracer,
        parent: () => contexts.active(),
        headersOf,
        passedOn,
      }),

    currentTraceparent() {
      const context = contexts.active();
      const flags = trace.getSpanContext(context)?.traceFlags ?? TraceFlags.NONE;
      return flags & TraceFlags.SAMPLED ? headersOf(context).traceparent : undefined;
    },
  };
}
