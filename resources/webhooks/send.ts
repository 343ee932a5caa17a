import type http from "node:http";
import type { Socket } from "node:net";
import { type ConnectionDefaults, createConnections, NOT_PUBLIC } from "../outbound/connections.ts";
import type { AllowedHosts } from "../outbound/ssrf-guard.ts";
import { validateWebhookUrl } from "./schema.ts";
import type { Exchange, ResponseStart } from "./types.ts";

/** The status of an endpoint's response, or the error that prevented one. */
export type EndpointResponse = { status?: number; error?: string; retryAfter?: string };

/** The response, and what was exchanged; without that if no request was sent. */
export type Sent = EndpointResponse & { exchange?: Exchange };

/** Posts a body to a URL. Never rejects, follows no redirects, and ends within 15 s or when `signal` is aborted. */
export type Send = (
  url: string,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
) => Promise<Sent>;
type SendOptions = SendDefaults & { allowed: AllowedHosts; userAgent: string };

export type SendDefaults = ConnectionDefaults & { timeouts?: typeof TIMEOUTS };

/** How long an attempt may take to connect and in total. Standard Webhooks 1.0.0 recommends 15 to 30 s. */
export const TIMEOUTS = { connectMs: 3_000, totalMs: 15_000 };
// More than the requests to a host at a time, so all are reused: a new one takes more time than the request.
const REUSE = { maxSockets: 100, maxFreeSockets: 50, timeout: 10_000 };
const CONNECTION_TIMEOUT = "The connection timed out.";
const NO_RESPONSE = "The connection was closed without a response.";

/** Creates the function that sends requests to endpoints on the public internet and to allowed hosts. */
export function createSend({ allowed, userAgent, timeouts = TIMEOUTS, ...defaults }: SendOptions): Send {
  const startRequest = createConnections(allowed, defaults, REUSE);

  return async function send(endpoint, headers, body, signal) {
    // The rules or the operator's allowlist may have changed since the URL was stored.
    const message = validateWebhookUrl(endpoint, allowed);
    if (message) return { error: `The URL ${message}.` };
    const url = new URL(endpoint);
    const requestHeaders = {
      ...headers,
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "user-agent": userAgent,
    };
    const options = { method: "POST", headers: requestHeaders, signal };
    const deadline = performance.now() + timeouts.totalMs;
    for (;;) {
      const request = startRequest(url, options);
      const totalMs = Math.max(0, deadline - performance.now());
      const response = await post(request, body, { ...timeouts, totalMs });
      // RFC 9112 §9.3.1: a server may close a connection during its reuse. Receivers recognize a repeated event.
      if (response === "closed before reuse") continue;
      const { start, ...answer } = response;
      return { ...answer, exchange: { requestHeaders, ...(start && { response: start }) } };
    }
  };
}

type Answer = (EndpointResponse & { start?: ResponseStart }) | "closed before reuse";

function post(
  request: http.ClientRequest,
  body: string,
  { connectMs, totalMs }: typeof TIMEOUTS,
): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const fail = (error: string) => {
    resolve({ error });
    request.destroy();
  };
  const connecting = setTimeout(fail, connectMs, CONNECTION_TIMEOUT).unref();
  const total = setTimeout(fail, totalMs, "The response timed out.").unref();
  request.on("socket", (socket: Socket) => {
    if (request.reusedSocket) return clearTimeout(connecting);
    socket.once(request.protocol === "https:" ? "secureConnect" : "connect", () => clearTimeout(connecting));
  });
  let hasResponse = false;
  request.on("response", async (response) => {
    hasResponse = true;
    clearTimeout(total);
    const start = await readStart(response);
    const retryAfter = response.headers["retry-after"];
    resolve({ status: start.status, ...(retryAfter && { retryAfter }), start });
  });
  request.on("error", (error: NodeJS.ErrnoException) => {
    const isStale = request.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
    resolve(isStale ? "closed before reuse" : { error: explain(error) });
  });
  request.on("close", () => {
    clearTimeout(connecting);
    clearTimeout(total);
    // Once there is a response, its end decides.
    if (!hasResponse) resolve({ error: NO_RESPONSE });
  });
  request.end(body);
  return promise;
}

const REASONS: Record<string, string> = {
  ENOTFOUND: "The hostname does not exist.",
  EAI_AGAIN: "The hostname could not be resolved.",
  ECONNREFUSED: "The connection was refused.",
  ECONNRESET: NO_RESPONSE,
  EPIPE: NO_RESPONSE,
  EHOSTUNREACH: "The host is unreachable.",
  ENETUNREACH: "The host is unreachable.",
  ETIMEDOUT: CONNECTION_TIMEOUT,
};

/** The library's own messages may disclose addresses of the internal network. */
function explain(error: NodeJS.ErrnoException): string {
  if (error.message === NOT_PUBLIC) return NOT_PUBLIC;
  const { code = "" } = error;
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO|EPROTO)/.test(code))
    return `The TLS handshake failed (${code}).`;
  return (
    REASONS[code] ?? (code.startsWith("HPE_") ? "The response is not valid HTTP." : "The request failed.")
  );
}

// Enough for the message of an error, and for most endpoints to finish their response.
const BODY_MAX = 4096; // bytes
// How long an endpoint may take to finish its response after the headers.
const BODY_MAX_MS = 1000;
const HEADERS_MAX = 4096; // characters, of names and values together
// A cookie may be a credential of the endpoint, and doesn't explain a failure.
const CREDENTIALS = new Set(["set-cookie", "set-cookie2"]);
const OMITTED = "(not stored)";

/**
 * Reads the start of a response. Resolves when the connection is free again, or closed because there is too much of the
 * response or it takes too long.
 */
async function readStart(response: http.IncomingMessage): Promise<ResponseStart> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(() => response.destroy(), BODY_MAX_MS).unref();
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on("error", () => {});
  response.on("data", (chunk: Buffer) => {
    if (bytes <= BODY_MAX) chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > BODY_MAX) response.destroy();
  });
  response.on("close", resolve);
  await promise;
  clearTimeout(timer);
  const isComplete = response.complete && bytes <= BODY_MAX;
  const text = printable(decode(Buffer.concat(chunks).subarray(0, BODY_MAX), isComplete));
  const body = cut(text);
  return {
    status: response.statusCode as number,
    headers: storable(response.headers),
    body,
    truncated: !isComplete || body.length < text.length,
  };
}

/** Leaves out headers that are too long together. */
function storable(headers: http.IncomingHttpHeaders): Record<string, string> {
  let left = HEADERS_MAX;
  const values = Object.entries(headers).map(([name, value]): [string, string] => [
    name,
    CREDENTIALS.has(name) ? OMITTED : printable(String(value)),
  ]);
  return Object.fromEntries(
    values.filter(([name, value]) => {
      const length = name.length + value.length;
      if (length > left) return false;
      left -= length;
      return true;
    }),
  );
}

/** Decodes UTF-8 with a replacement for what is invalid, except for a character that was cut at the end. */
function decode(bytes: Uint8Array, isComplete: boolean): string {
  return new TextDecoder().decode(bytes, { stream: !isComplete });
}

/** The replacement of an invalid byte takes three. */
function cut(text: string): string {
  const bytes = Buffer.from(text);
  return bytes.length > BODY_MAX ? decode(bytes.subarray(0, BODY_MAX), false) : text;
}

/** Replaces control characters, which PostgreSQL can't store (NUL) and terminals may obey. */
function printable(text: string): string {
  return text.replaceAll(/(?![\t\n\r])\p{Cc}/gu, "\ufffd");
}
