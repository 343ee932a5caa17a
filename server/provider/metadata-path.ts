import type { Middleware } from "koa";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";

const DOCUMENTS = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];

/**
 * Serves the metadata also where a client looks that takes the address of the MCP server for the issuer, with its path
 * inserted (RFC 8414 §3.1). Some MCP clients ask there first; the document names the issuer itself.
 */
export function serveMetadataOfMcp({ mcp }: PublicUrls): Middleware {
  const { pathname } = new URL(mcp);
  const paths = new Map(DOCUMENTS.map((path) => [path + pathname, path]));
  return function useMetadataPath(ctx, next) {
    ctx.path = paths.get(ctx.path) ?? ctx.path;
    return next();
  };
}
