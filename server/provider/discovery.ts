import type { Context, Middleware } from "koa";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { API_SCOPES } from "../../resources/access/scopes.ts";
import { ENDPOINTS, METADATA_PATHS } from "../oauth-endpoints.ts";
import type { Settings } from "../settings/config.ts";

// Only a new version or setting changes the document. Clients and shared caches may keep it for an hour.
const CACHE_CONTROL = "public, max-age=3600";

// draft-ietf-oauth-identity-assertion-authz-grant §7.2
const ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag";

/** RFC 8414 §2. Omits the authentication method of public clients if none are accepted. */
export function completeDiscovery({
  CIMD,
  DYNAMIC_REGISTRATION,
  IDP_ISSUER,
}: Settings): (ctx: Context) => void {
  const canRegister = DYNAMIC_REGISTRATION !== "off";
  const hasPublicClients = canRegister || CIMD.accepted !== "off";
  const isListed = (method: string) => hasPublicClients || method !== "none";
  return (ctx) => {
    const document = ctx.body as Record<string, unknown> | undefined;
    if (ctx.status !== 200 || typeof document?.issuer !== "string") return;
    ctx.set("Cache-Control", CACHE_CONTROL);
    document.scopes_supported = ["openid", "offline_access", ...API_SCOPES];
    if (canRegister) document.registration_endpoint = document.issuer + ENDPOINTS.registration.path;
    if (IDP_ISSUER) document.authorization_grant_profiles_supported = [ID_JAG_PROFILE];
    document.response_modes_supported = ["query"];
    const methods = (document.token_endpoint_auth_methods_supported as string[]).filter(isListed);
    const algorithms = document.token_endpoint_auth_signing_alg_values_supported;
    for (const endpoint of ["token", "revocation", "introspection"]) {
      document[`${endpoint}_endpoint_auth_signing_alg_values_supported`] = algorithms;
      // Public clients cannot introspect tokens.
      document[`${endpoint}_endpoint_auth_methods_supported`] =
        endpoint === "introspection" ? methods.filter((method) => method !== "none") : methods;
    }
  };
}

/** RFC 8414 §3.1: some MCP clients take the MCP server's address for the issuer. The document names the real one. */
export function serveMetadataOfMcp({ base, mcp }: PublicUrls): Middleware {
  const { pathname } = new URL(mcp);
  const { host } = new URL(base);
  const paths = new Map(METADATA_PATHS.map((path) => [path + pathname, path]));
  return function useMetadataPath(ctx, next) {
    ctx.path = paths.get(ctx.path) ?? ctx.path;
    // Also on the host of the MCP server: oidc-provider builds its URLs from the request.
    if (METADATA_PATHS.includes(ctx.path)) ctx.req.headers.host = host;
    return next();
  };
}
