import type { IncomingMessage, RequestListener } from "node:http";
import { type ParsedUrlQuery, parse } from "node:querystring";
import type Koa from "koa";
import type { Context, Middleware } from "koa";
import compose from "koa-compose";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import type { ServedDomain } from "../../resources/domains/types.ts";
import { Problem } from "../../resources/http/problem.ts";
import { isOfResource, isSentTwice } from "../../resources/http/routing.ts";

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
    if (hosts.has(ctx.get("host")) && !isForOtherHost(ctx.req)) return next();
    // Browsers would require https of all hosts below this one, for years.
    ctx.remove("Strict-Transport-Security");
    throw ctx.state.hostError ?? misdirected(base);
  };
}

/**
 * Serves hosts of domains apart: no request to one passes a step of the service's own hosts, unless the database can't be
 * read. Health checks don't need it, and `checkHost` throws the error.
 */
export function separateDomains(
  hosts: ReadonlySet<string>,
  resolve: (host: string) => Promise<ServedDomain | undefined>,
  steps: Middleware[],
): Middleware {
  const serve = compose(steps);
  return async function serveDomain(ctx, next) {
    const host = ctx.get("host");
    if (hosts.has(host) || !DOMAIN.test(host) || isForOtherHost(ctx.req)) return next();
    const domain = await resolve(host).catch((error: unknown) => {
      ctx.state.hostError = error;
    });
    if (!domain) return next();
    ctx.state.domain = domain;
    return serve(ctx, async () => {});
  };
}

function misdirected(base: string): Problem {
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
    const host = ctx.get("host");
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

/** Writes the host and the target of a request in the form that everything behind this compares. */
export function normalizeRequests(listener: RequestListener, urls: PublicUrls): RequestListener {
  const canonicalHost = createCanonicalHost(urls);
  return function listen(request, response) {
    const { headers, url = "" } = request;
    if (headers.host !== undefined) headers.host = canonicalHost(headers.host);
    if (!url.startsWith("/") || url.includes("%")) request.url = normalizeTarget(request, canonicalHost);
    listener(request, response);
  };
}

type CanonicalHost = (host: string) => string;

// What can be a domain of an organization: no address of this machine, whose probes need no database.
const DOMAIN = /^(?=.{1,260}$)[\w-][\w.-]*\.[a-z][\w-]*(?::\d+)?$/;
// A name has at most 253 characters. Without `@`, a slash and the like, nothing but a host and a port can be meant.
const HOST = /^[\w.:[\]-]{1,300}$/;

/** RFC 9110 §4.2.3: neither case nor the default port makes another host. RFC 1034 §3.1: nor does a final dot. */
function createCanonicalHost(urls: PublicUrls): CanonicalHost {
  const own = [urls.base, urls.mcp, urls.short].map((url) => new URL(url));
  const hosts = new Set(own.map(({ host }) => host));
  const canonical = (protocol: string, host: string) =>
    URL.parse(`${protocol}//${host}`)?.host.replace(/\.(?=:|$)/, "");
  return function canonicalHost(host) {
    if (hosts.has(host) || !HOST.test(host)) return host;
    const same = own.find((url) => canonical(url.protocol, host) === url.host);
    // Domains are served with the scheme of short links.
    return same?.host ?? canonical(new URL(urls.short).protocol, host) ?? host;
  };
}

export function isForOtherHost({ url = "" }: IncomingMessage): boolean {
  return ABSOLUTE.test(url);
}

/** RFC 9112 §3.2.2, RFC 3986 §6.2.2.2. */
function normalizeTarget({ url = "", headers }: IncomingMessage, canonicalHost: CanonicalHost): string {
  const [origin = "", host] = ABSOLUTE.exec(url) ?? [];
  const isOwn = host !== undefined && canonicalHost(host) === headers.host;
  const target = isOwn ? url.slice(origin.length).replace(/^(?!\/)/, "/") : url;
  const [path = ""] = SLUG.exec(target) ?? [];
  return path.replaceAll(ENCODED_UNRESERVED, decodeURIComponent) + target.slice(path.length);
}

const PARSED = Symbol("the parsed query and its text");

type ParsedRequest = Koa.Request & { [PARSED]?: { text: string; query: ParsedUrlQuery } };

/** Changes how Koa reads the query and the protocol of a request. */
export function extendRequests(app: Koa, base: string): void {
  // With Node's parser: Koa's (3.3) collects a name's values repeatedly, 20 ms for a long query.
  const query = function (this: ParsedRequest) {
    const text = this.querystring;
    if (this[PARSED]?.text !== text) this[PARSED] = { text, query: parse(text, "&", "=", { maxKeys: 0 }) };
    return this[PARSED]?.query;
  };
  // URLs and cookies follow the issuer, not what a proxy says.
  const protocol = new URL(base).protocol.slice(0, -1);
  Object.defineProperties(app.request, {
    query: { configurable: true, get: query },
    protocol: { configurable: true, get: () => protocol },
  });
}
