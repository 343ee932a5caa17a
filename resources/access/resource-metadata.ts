import type { Middleware } from "koa";
import { API_SCOPES, BASIC_SCOPES } from "./scopes.ts";

/** The public addresses of the service; none ends in a slash. */
export type Addresses = {
  /** The issuer, and the resource that stands for both of the others. */
  base: string;
  /** The REST API: `<base>/v1`. */
  api: string;
  mcp: string;
  /** Where short links live. */
  short: string;
};

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Where a resource describes itself: RFC 9728 §3.1, the path is inserted. */
export function metadataUrl(resource: string): string {
  const { origin, pathname } = new URL(resource);
  return origin + WELL_KNOWN + (pathname === "/" ? "" : pathname);
}

/** Serves the metadata of the three resources (RFC 9728 §3.2), readable from every origin. */
export function resourceMetadata(addresses: Addresses): Middleware {
  const documents = new Map([
    describe(addresses, addresses.base, "linkgate", API_SCOPES),
    describe(addresses, addresses.api, "linkgate REST API", API_SCOPES),
    describe(addresses, addresses.mcp, "linkgate MCP", BASIC_SCOPES),
  ]);
  return async function serveMetadata(ctx, next) {
    const document = documents.get(ctx.host.toLowerCase() + ctx.path);
    if (!document || !READS.has(ctx.method)) return next();
    ctx.set("Access-Control-Allow-Origin", "*");
    if (ctx.method === "OPTIONS") {
      // MCP clients in a browser send MCP-Protocol-Version, which makes the browser ask first.
      ctx.set("Access-Control-Allow-Headers", ctx.get("access-control-request-headers"));
      ctx.status = 204;
      return;
    }
    ctx.set("Cache-Control", "public, max-age=3600");
    ctx.body = document;
  };
}

function describe(
  { base }: Addresses,
  resource: string,
  name: string,
  scopes: readonly string[],
): [key: string, document: object] {
  const { host, pathname } = new URL(metadataUrl(resource));
  return [
    host + pathname,
    {
      resource,
      resource_name: name,
      authorization_servers: [base],
      scopes_supported: scopes,
      bearer_methods_supported: ["header"],
      resource_documentation: `${base}/docs`,
    },
  ];
}
