import type { Middleware } from "koa";
import { DPOP_ALGS } from "./dpop.ts";
import { API_SCOPES, BASIC_SCOPES, READ_SCOPES } from "./scopes.ts";

/** The public URLs of the service, without trailing slashes. */
export type PublicUrls = {
  /** The issuer, and the resource that includes both of the others. */
  base: string;
  /** The REST API: `<base>/v1`. */
  api: string;
  mcp: string;
  /** MCP without anything that changes data: `<mcp>/read`. */
  mcpRead: string;
  short: string;
};

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

/** The well-known path, inserted before the resource's own (RFC 9728 §3.1). */
export function metadataUrl(resource: string): string {
  const { origin, pathname } = new URL(resource);
  return origin + WELL_KNOWN + (pathname === "/" ? "" : pathname);
}

/** RFC 9728 §3.2: the metadata must name the URL that was given, with or without the slash. */
export function resourceMetadata(urls: PublicUrls): Middleware {
  const documents = new Map([
    describe(urls, urls.base, "linkgate", API_SCOPES),
    describe(urls, urls.api, "linkgate REST API", API_SCOPES),
    describe(urls, urls.mcp, "linkgate MCP", BASIC_SCOPES),
    describe(urls, withSlash(urls.mcp), "linkgate MCP", BASIC_SCOPES),
    describe(urls, urls.mcpRead, "linkgate MCP (read-only)", READ_SCOPES),
    describe(urls, withSlash(urls.mcpRead), "linkgate MCP (read-only)", READ_SCOPES),
  ]);
  return async function serveMetadata(ctx, next) {
    const document = documents.get(ctx.host + ctx.path);
    if (!document) return next();
    ctx.set("Cache-Control", "public, max-age=3600");
    ctx.body = document;
  };
}

export function withSlash(resource: string): string {
  return resource.endsWith("/") ? resource : `${resource}/`;
}

function describe(
  { base }: PublicUrls,
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
      dpop_signing_alg_values_supported: DPOP_ALGS,
      dpop_bound_access_tokens_required: false,
      resource_documentation: `${base}/docs`,
    },
  ];
}
