import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

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

/** A receiver of the OpenTelemetry protocol over HTTP. */
export type Collector = {
  url: string;
  /** Everything that arrived as JSON, and the rest as text. */
  bodies: string[];
  contentTypes: string[];
  payloads: Payload[];
  spans(): Span[];
  /** Resolves to the first span that matches, when it has arrived. */
  waitForSpan(matches: (span: Span) => boolean): Promise<Span>;
  /** Resolves when something has arrived at a path. */
  waitForPath(path: string): Promise<void>;
  close(): void;
};

/** Starts a collector. */
export async function startCollector(): Promise<Collector> {
  const bodies: string[] = [];
  const contentTypes: string[] = [];
  const payloads: Payload[] = [];
  const paths = new Set<string>();
  const waiting = new Set<() => void>();
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    const contentType = request.headers["content-type"] ?? "";
    bodies.push(body.toString("latin1"));
    contentTypes.push(contentType);
    if (contentType.includes("json")) payloads.push(JSON.parse(body.toString()));
    paths.add(request.url ?? "");
    response.writeHead(200, { "content-type": contentType }).end(contentType.includes("json") ? "{}" : "");
    for (const look of waiting) look();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  function waitFor<T>(find: () => T | undefined): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>();
    const look = () => {
      const found = find();
      if (found === undefined) return;
      waiting.delete(look);
      resolve(found);
    };
    waiting.add(look);
    look();
    return promise;
  }

  const spans = () =>
    payloads.flatMap(({ resourceSpans = [] }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    );
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    contentTypes,
    payloads,
    spans,
    waitForSpan: (matches) => waitFor(() => spans().find(matches)),
    waitForPath: (path) => waitFor(() => paths.has(path) || undefined).then(() => {}),
    close: () => void server.close(),
  };
}

/** Returns the attributes of a span by their names. */
export function attributesOf({ attributes }: { attributes: Attribute[] }): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? (value.intValue && Number(value.intValue)),
    ]),
  );
}
