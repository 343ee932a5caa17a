import type { IncomingMessage, RequestListener } from "node:http";
import type { Context, Middleware } from "koa";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { isSentTwice } from "../../resources/http/headers.ts";
import { Problem } from "../../resources/http/problem.ts";
import { isOfResource } from "../../resources/http/routing.ts";

/** Rejects requests that proxies may understand in another way. */
export const checkFraming: Middleware = function rejectAmbiguous({ req, res }, next) {
  // RFC 9112 §3.2
  if (isSentTwice(req, "host")) throw new Problem(400, "invalid_request", "Send one Host header.");
  // RFC 9112 §6.1. Node's parser accepts every coding before `chunked`, and doesn't decode it.
  const coding = req.headers["transfer-encoding"] ?? "chunked";
  if (coding.toLowerCase() === "chunked") return next();
  res.setHeader("Connection", "close");
  throw new Problem(501, "unsupported_transfer_encoding", "The only supported Transfer-Encoding is chunked.");
};

/** RFC 9110 §15.5.20: no response can be made to contain a foreign name. */
export function checkHost(hosts: ReadonlySet<string>, base: string): Middleware {
  return function rejectForeignHost(ctx, next) {
    // Not `ctx.host`, which a proxy header can set.
    if (hosts.has(ctx.get("host").toLowerCase()) && !isForOtherHost(ctx.req)) return next();
    throw misdirected(base);
  };
}

export function misdirected(base: string): Problem {
  return new Problem(421, "misdirected_request", `This server is ${base}.`);
}

const METADATA = "/.well-known/";

/** RFC 9110 §15.5.20: a host of its own for short links has no cookies, passwords or tokens. */
export function separateHosts(urls: PublicUrls, isReserved: (segment: string) => boolean): Middleware {
  const baseHost = new URL(urls.base).host;
  const mcpHost = new URL(urls.mcp).host;
  const isMcp = isOfResource(urls.mcp);
  // An MCP client looks for the metadata, also of the authorization server, on the host that it calls.
  const isServed = (ctx: Context, host: string) =>
    isMcp(ctx) || ctx.path.startsWith("/assets/") || (host === mcpHost && ctx.path.startsWith(METADATA));
  return async function rejectOnOtherHosts(ctx, next) {
    const host = ctx.get("host").toLowerCase();
    if (host === baseHost || isServed(ctx, host)) return next();
    const [, segment = ""] = ctx.path.split("/", 2);
    // The library's routes ignore case.
    if (!isReserved(segment) && !ctx.path.toLowerCase().startsWith(METADATA)) return next();
    throw misdirected(urls.base);
  };
}

const ABSOLUTE = /^https?:\/\/([^/?#]*)(?=[/?])/i;
// A path of one segment, such as that of a short link.
const SLUG = /^\/[^/?]*(?=\/?(?:\?|$))/;
// RFC 3986 §2.3: letters, digits and `-._~`.
const ENCODED_UNRESERVED = /%(?:2[de]|3\d|[46][1-9a-f]|[57][\da]|5f|7e)/gi;

export function normalizeTargets(listener: RequestListener): RequestListener {
  return function listen(request, response) {
    const { url = "" } = request;
    if (!url.startsWith("/") || url.includes("%")) request.url = normalized(request);
    listener(request, response);
  };
}

export function isForOtherHost({ url = "" }: IncomingMessage): boolean {
  return ABSOLUTE.test(url);
}

/** RFC 9112 §3.2.2, RFC 3986 §6.2.2.2. */
function normalized({ url = "", headers }: IncomingMessage): string {
  const [origin = "", host] = ABSOLUTE.exec(url) ?? [];
  const isOwn = host?.toLowerCase() === headers.host?.toLowerCase();
  const target = isOwn ? url.slice(origin.length).replace(/^(?!\/)/, "/") : url;
  const [path = ""] = SLUG.exec(target) ?? [];
  return path.replaceAll(ENCODED_UNRESERVED, decodeURIComponent) + target.slice(path.length);
}
