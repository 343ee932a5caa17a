import { buffer } from "node:stream/consumers";
import { startApp } from "./clients/app-server.ts";
import { until } from "./webhooks.ts";

type Attribute = { key: string; value: { stringValue?: string; intValue?: number | string } };
export type Span = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes: Attribute[];
  status: { code?: number };
  links?: { traceId: string; spanId: string }[];
};
type Payload = {
  resourceSpans?: { resource: { attributes: Attribute[] }; scopeSpans: { spans: Span[] }[] }[];
};

export async function startCollector() {
  /** Everything that arrived, as text; `payloads` is what was JSON. */
  const bodies: string[] = [];
  const contentTypes: string[] = [];
  const payloads: Payload[] = [];
  const paths = new Set<string>();
  const { url } = await startApp(async (request, response) => {
    const body = await buffer(request);
    const contentType = request.headers["content-type"] ?? "";
    bodies.push(body.toString("latin1"));
    contentTypes.push(contentType);
    if (contentType.includes("json")) payloads.push(JSON.parse(body.toString()));
    paths.add(request.url ?? "");
    response.writeHead(200, { "content-type": contentType }).end(contentType.includes("json") ? "{}" : "");
  });

  const spans = () =>
    payloads.flatMap(({ resourceSpans = [] }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    );
  return {
    url,
    bodies,
    contentTypes,
    payloads,
    spans,
    waitForSpan: (matches: (span: Span) => boolean) => until(async () => spans().find(matches)),
    waitForPath: (path: string) => until(async () => paths.has(path) || undefined),
  };
}

export function attributesOf({ attributes }: { attributes: Attribute[] }): Record<string, unknown> {
  const read = ({ stringValue, intValue }: Attribute["value"]) =>
    stringValue ?? (intValue && Number(intValue));
  return Object.fromEntries(attributes.map(({ key, value }) => [key, read(value)]));
}

/** The trace and the span of a caller, and the header that passes them on. */
export const TRACE = "0af7651916cd43dd8448eb211c80319c";
export const PARENT = "b7ad6b7169203331";
export const TRACEPARENT = `00-${TRACE}-${PARENT}-01`;

/** Returns the settings of a server that sends its spans to a collector without delay. */
export function tracedBy(collector: { url: string }): Record<string, string> {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_BSP_SCHEDULE_DELAY: "50",
  };
}
