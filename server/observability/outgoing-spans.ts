import {
  type Attributes,
  type Context,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { TraceOutgoing } from "../../resources/outbound/outgoing-trace.ts";
import { methodOf } from "./http-method.ts";
import type { PassedOn } from "./tracing.ts";

type OutgoingOptions = {
  tracer: Tracer;
  /** Returns the context of the current request. */
  parent: () => Context;
  /** Returns the headers that pass a trace on. */
  headersOf: (context: Context) => Headers;
  passedOn: PassedOn;
};
type Headers = Record<string, string>;

const SELECT: Record<PassedOn, (headers: Headers) => Headers> = {
  everything: (headers) => headers,
  traceparent: ({ tracestate: _, ...headers }) => headers,
  nothing: () => ({}),
};

// From this status on, the client's span has failed (OpenTelemetry, semantic conventions for HTTP spans).
const FIRST_ERROR = 400;

/**
 * Creates the spans of requests to other servers. They name the server, but neither the path nor the query, which may
 * contain codes and tokens.
 */
export function createTraceOutgoing({ tracer, parent, headersOf, passedOn }: OutgoingOptions): TraceOutgoing {
  return async (request, send) => {
    const context = parent();
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
  };
}

function describe({ method, url }: { method: string; url: string | URL }): {
  name: string;
  attributes: Attributes;
} {
  const { name, attribute } = methodOf(method);
  const attributes: Attributes = { "http.request.method": attribute };
  const target = URL.parse(String(url));
  if (target) {
    attributes["server.address"] = target.hostname.replace(/^\[(.*)\]$/, "$1");
    attributes["server.port"] = Number(target.port) || (target.protocol === "http:" ? 80 : 443);
  }
  return { name, attributes };
}

/** Returns the code of the cause, such as `ECONNREFUSED`, or the name of the error. */
function errorTypeOf(error: unknown): string {
  const { name, code, cause } = error as Error & { code?: unknown };
  const codes = [(cause as { code?: unknown } | undefined)?.code, code];
  return codes.find((one) => typeof one === "string") ?? name ?? "_OTHER";
}
