import http from "node:http";
import https from "node:https";
import type { LookupFunction, Socket } from "node:net";
import { RequestFilteringHttpsAgent } from "request-filtering-agent";
import { type AllowedHosts, isPublicAddress, isVouchedFor, refuseWebhookUrl } from "./address.ts";
import { createLookup } from "./lookup.ts";

/** What a receiver answered, or why it did not; nothing of what else it says is kept. */
export type Answer = { status?: number; error?: string; retryAfter?: string };

/** Posts a body to an address. Never rejects, follows no redirect, and ends within 15 s, or when `signal` is aborted. */
export type Send = (
  url: string,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
) => Promise<Answer>;

/** How long an attempt may take, until it is connected and in all. Standard Webhooks 1.0.0 advises 15 to 30 s. */
export type Patience = { connectMs: number; totalMs: number };

/** What sending takes from outside; there are defaults for all of it. */
export type Surroundings = {
  /** Resolves the names of receivers that nobody vouches for, to all of their addresses. */
  lookup?: LookupFunction;
  patience?: Patience;
};

type SendOptions = Surroundings & { allowed: AllowedHosts; userAgent: string };

/** How long a receiver may take. */
export const PATIENCE: Patience = { connectMs: 3_000, totalMs: 15_000 };
// Enough for a receiver to end its answer in peace; what it says is of no interest.
const MAX_ANSWER_BYTES = 4096;
const NOT_PUBLIC = "The name resolves to an address that is not on the public internet.";

/** Makes the sender: to the public internet, and to receivers that the operator vouches for. */
export function createSend({
  allowed,
  userAgent,
  lookup = createLookup(),
  patience = PATIENCE,
}: SendOptions): Send {
  // No connection is used twice, and none goes through a proxy, whatever the environment says.
  const guarded = new RequestFilteringHttpsAgent({ keepAlive: false, maxCachedSessions: 0 });
  const secure = new https.Agent({ keepAlive: false, maxCachedSessions: 0 });
  const plain = new http.Agent({ keepAlive: false });
  const onlyPublic = publicLookup(lookup);

  return async function send(address, headers, body, signal) {
    // The rules or the operator's mind may have changed since it was stored.
    const refusal = refuseWebhookUrl(address, allowed);
    if (refusal) return { error: refusal };
    const url = new URL(address);
    const isTrusted = isVouchedFor(url, allowed);
    const isSecure = url.protocol === "https:";
    const options = {
      method: "POST",
      headers: {
        ...headers,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "user-agent": userAgent,
      },
      agent: isTrusted ? (isSecure ? secure : plain) : guarded,
      ...(!isTrusted && { lookup: onlyPublic }),
      signal,
    };
    const request = isSecure ? https.request(url, options) : http.request(url, options);
    return exchange(request, body, patience, isTrusted ? () => true : isPublicAddress);
  };
}

/**
 * Resolves a name to public addresses alone; one that is not makes it fail. What was checked is what is connected to, so
 * that a second answer of the name server changes nothing. The agent's own check knows `::/96` as public.
 */
function publicLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, done) =>
    lookup(hostname, { ...options, all: true }, (error, found) => {
      const addresses = Array.isArray(found) ? found : [];
      const [first] = addresses;
      if (error || !first) return done(error ?? new Error("The name has no address."), "");
      if (!addresses.every(({ address }) => isPublicAddress(address))) return done(new Error(NOT_PUBLIC), "");
      return options.all ? done(null, addresses) : done(null, first.address, first.family);
    });
}

function exchange(
  request: http.ClientRequest,
  body: string,
  { connectMs, totalMs }: Patience,
  isAllowed: (address: string) => boolean,
): Promise<Answer> {
  return new Promise((resolve) => {
    const fail = (error: string) => {
      resolve({ error });
      request.destroy();
    };
    const connecting = setTimeout(fail, connectMs, "No connection within the time allowed.").unref();
    const whole = setTimeout(fail, totalMs, "No answer within the time allowed.").unref();
    request.on("socket", (socket: Socket) => {
      socket.once("connect", () => {
        if (!isAllowed(socket.remoteAddress ?? "")) fail(NOT_PUBLIC);
      });
      socket.once(request.protocol === "https:" ? "secureConnect" : "connect", () =>
        clearTimeout(connecting),
      );
    });
    request.on("response", (response) => {
      const retryAfter = response.headers["retry-after"];
      resolve({ status: response.statusCode as number, ...(retryAfter && { retryAfter }) });
      discard(response);
    });
    request.on("error", (error) => resolve({ error: explain(error) }));
    request.on("close", () => {
      clearTimeout(connecting);
      clearTimeout(whole);
      resolve({ error: "The connection was closed without an answer." });
    });
    request.end(body);
  });
}

function discard(response: http.IncomingMessage): void {
  let bytes = 0;
  response.on("error", () => {});
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) response.destroy();
  });
}

const REASONS: Record<string, string> = {
  ENOTFOUND: "The name does not exist.",
  EAI_AGAIN: "The name could not be resolved.",
  ECONNREFUSED: "The connection was refused.",
  ECONNRESET: "The connection was closed without an answer.",
  EPIPE: "The connection was closed without an answer.",
  EHOSTUNREACH: "The receiver cannot be reached.",
  ENETUNREACH: "The receiver cannot be reached.",
  ETIMEDOUT: "No connection within the time allowed.",
};

/** What went wrong, for people. What the library says may name addresses of a network that is nobody's business. */
function explain(error: NodeJS.ErrnoException): string {
  if (error.message === NOT_PUBLIC || /is not allowed/.test(error.message)) return NOT_PUBLIC;
  const { code = "" } = error;
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO|EPROTO)/.test(code))
    return `TLS failed (${code}).`;
  return REASONS[code] ?? (code.startsWith("HPE_") ? "The answer is not HTTP." : "The request failed.");
}
