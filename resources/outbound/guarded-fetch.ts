import type http from "node:http";
import { type ConnectionDefaults, createConnections } from "./connections.ts";
import { type AllowedHosts, isAllowedHost, mayBePublic } from "./ssrf-guard.ts";

/** Runs a request to another server in a span. `send` gets the headers that pass the trace on, if any. */
export type TraceOutgoing = <Answer extends { status: number }>(
  request: { method: string; url: string | URL },
  send: (headers: Record<string, string>) => Promise<Answer>,
) => Promise<Answer>;
export const untraced: TraceOutgoing = (_request, send) => send({});

/** The message is safe to show: it says nothing about this host's network. The cause may. */
export class FetchFailed extends Error {
  override readonly name = "FetchFailed";
}

/** Gets a small document from the public internet or an exempt host. @throws FetchFailed, but never for a status */
export type GuardedFetch = (
  url: string,
  options?: { accept?: string; maxBytes?: number; timeoutMs?: number },
) => Promise<Response>;
type FetchOptions = ConnectionDefaults & {
  trace?: TraceOutgoing | undefined;
  /** Hosts that may be private or use plain http. */
  allowed: AllowedHosts;
  userAgent: string;
};

// An OAuth request waits for the document, and its client waits for no more than about 10 s.
const TIMEOUT_MS = 5000;
// The documents of identity providers with dozens of keys and endpoints stay below this.
const MAX_BYTES = 64 * 1024;

/** Fetches over https only, without redirects. The address is checked first, so it can't scan a network. */
export function createGuardedFetch({
  allowed,
  userAgent,
  trace = untraced,
  ...defaults
}: FetchOptions): GuardedFetch {
  const startRequest = createConnections(allowed, defaults);

  return async function guardedFetch(target, options = {}) {
    const { accept = "application/json", maxBytes = MAX_BYTES, timeoutMs = TIMEOUT_MS } = options;
    const url = URL.parse(target);
    if (!url || !isFetchable(url, allowed)) throw new FetchFailed("the URL must be a public https URL");
    const signal = AbortSignal.timeout(timeoutMs);
    return trace({ method: "GET", url }, (traceHeaders) => {
      const headers = { ...traceHeaders, accept, "user-agent": userAgent };
      return readResponse(startRequest(url, { headers, signal }), maxBytes);
    });
  };
}

function isFetchable(url: URL, allowed: AllowedHosts): boolean {
  if (url.username || url.password) return false;
  if (isAllowedHost(url, allowed)) return url.protocol === "https:" || url.protocol === "http:";
  return url.protocol === "https:" && url.port === "" && mayBePublic(url.hostname);
}

function readResponse(request: http.ClientRequest, maxBytes: number): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const fail = (message: string, cause?: unknown) => {
    reject(new FetchFailed(message, { cause }));
    request.destroy();
  };
  request.on("error", (error) => fail("the request failed", error));
  request.on("response", (response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on("error", () => fail("the response is incomplete"));
    response.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) fail(`the response is larger than ${maxBytes} bytes`);
      else chunks.push(chunk);
    });
    response.on("end", () => resolve(toResponse(response, Buffer.concat(chunks))));
  });
  request.end();
  return promise;
}

function toResponse({ statusCode = 500, headers }: http.IncomingMessage, body: Buffer): Response {
  const kept = ["content-type", "cache-control", "expires"].flatMap((name): [string, string][] => {
    const value = headers[name];
    return typeof value === "string" ? [[name, value]] : [];
  });
  // `Response` accepts no other status, and no body with some of them.
  const isFinal = statusCode >= 200 && statusCode <= 599 && ![204, 205, 304].includes(statusCode);
  return new Response(isFinal ? new Uint8Array(body) : null, {
    status: isFinal ? statusCode : 502,
    headers: kept,
  });
}
