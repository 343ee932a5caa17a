import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import {
  type Attributes,
  type Context,
  type ContextManager,
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter as JsonTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { StatementObserver } from "../../adapters/database/statement-observer.ts";
import type { TraceOutgoing } from "../../resources/outbound/guarded-fetch.ts";
import type { Send } from "../../resources/webhooks/send.ts";
import type { TelemetrySettings } from "../settings/telemetry-settings.ts";
import { VERSION } from "../version.ts";

/**
 * `everything` is for the operator's own servers. Configured servers get only `traceparent`, which contains random
 * IDs (W3C Trace Context, “Information exposure”). Those that a request names get nothing.
 */
export type PassedOn = "everything" | "traceparent" | "nothing";

export type Telemetry = ReturnType<typeof startOpenTelemetry>;

/** The exporter reads its own settings from the environment. */
export function startOpenTelemetry(settings: TelemetrySettings) {
  const tracer = startTracer(settings);
  const contexts = new AsyncLocalStorageContextManager().enable();
  return {
    tracing: createTracing(tracer.getTracer("linkgate", VERSION), contexts),
    async stop(): Promise<void> {
      // A collector that can't be reached must not fail the shutdown.
      await tracer.shutdown().catch(() => {});
      contexts.disable();
    },
  };
}

/** OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win. */
function describeProcess(): Resource {
  const own = resourceFromAttributes({ "service.name": "linkgate", "service.version": VERSION });
  const detectors = [serviceInstanceIdDetector, envDetector];
  return defaultResource().merge(own).merge(detectResources({ detectors }));
}

function startTracer({ exporter, batch, isParentBased, sampleRatio }: TelemetrySettings): TracerProvider {
  const root: Sampler = new TraceIdRatioBasedSampler(sampleRatio);
  return new TracerProvider({
    resource: describeProcess(),
    sampler: isParentBased ? new ParentBasedSampler({ root }) : root,
    spanProcessors: [new BatchSpanProcessor({ exporter: spanExporter(exporter), ...batch })],
  });
}

function spanExporter(exporter: TelemetrySettings["exporter"]): SpanExporter {
  if (exporter === "console") return new ConsoleSpanExporter();
  return exporter === "http/json" ? new JsonTraceExporter() : new OTLPTraceExporter();
}

// Health checks would be most of the traces of an idle service.
const PROBES = /^\/(healthz|readyz|metrics)(\?|$)/;
// A long list of placeholders says no more.
const MAX_SQL = 2000;
// The parts of a transaction and of a wait have no span of their own.
const WITHOUT_SPAN = new Set(["acquire", "transaction"]);

const propagator = new W3CTraceContextPropagator();

type TracedRequest = { requestId: string; method: string; route: string; status: number };

/** Spans never contain paths, headers, bodies or values of statements. */
export type Tracing = ReturnType<typeof createTracing>;

/** Names follow the semantic conventions of OpenTelemetry. */
function createTracing(tracer: Tracer, contexts: ContextManager) {
  function headersOf(context: Context): Record<string, string> {
    const headers: Record<string, string> = {};
    propagator.inject(context, headers, defaultTextMapSetter);
    return headers;
  }

  function startRequest(request: IncomingMessage, response: ServerResponse): Context {
    const parent = propagator.extract(ROOT_CONTEXT, request.headers, defaultTextMapGetter);
    const { name, attribute } = methodOf(request.method ?? "");
    const attributes = { "http.request.method": attribute };
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
    response.once("close", () => span.end());
    return trace.setSpan(parent, span);
  }

  return {
    /** The span continues the trace of the caller. */
    traceRequests: (listener: RequestListener): RequestListener =>
      function traceRequest(request, response) {
        if (PROBES.test(request.url ?? "")) return listener(request, response);
        return contexts.with(startRequest(request, response), () => listener(request, response));
      },

    /** The route is a pattern, because a path may contain a secret. */
    describeRequest({ requestId, method, route, status }: TracedRequest): void {
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
    } satisfies StatementObserver,

    traceDeliveries:
      (send: Send): Send =>
      async (url, headers, body, signal) => {
        // Not a part of the trace in which the queue happened to be read, but of that which caused the event.
        const cause = propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter);
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

    /** Spans name the server, but neither the path nor the query, which may contain codes and tokens. */
    traceOutgoing:
      (passedOn: PassedOn): TraceOutgoing =>
      async (request, send) => {
        const context = contexts.active();
        const { name, attributes } = describe(request);
        const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, context);
        try {
          const answer = await send(SELECT[passedOn](headersOf(trace.setSpan(context, span))));
          const { status } = answer;
          span.setAttribute("http.response.status_code", status);
          if (status >= FIRST_ERROR) {
            span.setAttribute("error.type", String(status));
            span.setStatus({ code: SpanStatusCode.ERROR });
          }
          return answer;
        } catch (error) {
          span.setAttribute("error.type", errorTypeOf(error));
          // Not its message, which may contain the URL.
          span.setStatus({ code: SpanStatusCode.ERROR });
          throw error;
        } finally {
          span.end();
        }
      },

    /** Returns undefined if the trace of the current request isn't recorded. */
    currentTraceparent(): string | undefined {
      const context = contexts.active();
      const flags = trace.getSpanContext(context)?.traceFlags ?? TraceFlags.NONE;
      return flags & TraceFlags.SAMPLED ? headersOf(context).traceparent : undefined;
    },
  };
}

const SELECT: Record<PassedOn, (headers: Record<string, string>) => Record<string, string>> = {
  everything: (headers) => headers,
  traceparent: ({ tracestate: _, ...headers }) => headers,
  nothing: () => ({}),
};

// From this status on, the client's span has failed (OpenTelemetry, semantic conventions for HTTP spans).
const FIRST_ERROR = 400;

function describe({ method, url }: { method: string; url: string | URL }) {
  const { name, attribute } = methodOf(method);
  const attributes: Attributes = { "http.request.method": attribute };
  const target = URL.parse(String(url));
  if (target) {
    attributes["server.address"] = target.hostname.replace(/^\[(.*)\]$/, "$1");
    attributes["server.port"] = Number(target.port) || (target.protocol === "http:" ? 80 : 443);
  }
  return { name, attributes };
}

function errorTypeOf(error: unknown): string {
  const { name, code, cause } = error as Error & { code?: unknown };
  const codes = [(cause as { code?: unknown } | undefined)?.code, code];
  return codes.find((one) => typeof one === "string") ?? name ?? "_OTHER";
}

// Only what is a method becomes a name; clients can send any token.
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

function methodOf(method: string): { name: string; attribute: string } {
  return METHODS.has(method) ? { name: method, attribute: method } : { name: "HTTP", attribute: "_OTHER" };
}
