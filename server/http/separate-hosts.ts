import type { Context, Middleware } from "koa";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { isOfResource } from "../../resources/http/mount.ts";
import { misdirected } from "./host-check.ts";

const METADATA = "/.well-known/";

/**
 * Serves the pages, the API and the OAuth endpoints on the host of `BASE_URL` only, with 421 (RFC 9110 §15.5.20)
 * elsewhere: a host of its own for short links has none of the service's cookies, passwords or tokens. Every host keeps
 * its unknown paths, which are not found.
 * @param isReserved returns whether the first segment of a path belongs to the service
 */
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
