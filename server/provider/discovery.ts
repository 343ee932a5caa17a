import type { Context } from "koa";
import { API_SCOPES } from "../../resources/access/scopes.ts";
import type { Settings } from "../config.ts";

// Only a new version or setting changes the document. Clients and shared caches may keep it for an hour.
const CACHE_CONTROL = "public, max-age=3600";

/**
 * Completes the metadata document (RFC 8414 §2): adds the API's scopes, lists the only response mode, and omits the
 * authentication methods of clients with a metadata document unless these are accepted.
 */
export function completeDiscovery({ CIMD }: Settings): (ctx: Context) => void {
  const isListed = (method: string) => CIMD || (method !== "none" && method !== "private_key_jwt");
  return (ctx) => {
    const document = ctx.body as Record<string, unknown> | undefined;
    if (ctx.status !== 200 || typeof document?.issuer !== "string") return;
    ctx.set("Cache-Control", CACHE_CONTROL);
    document.scopes_supported = ["openid", "offline_access", ...API_SCOPES];
    document.response_modes_supported = ["query"];
    const methods = (document.token_endpoint_auth_methods_supported as string[]).filter(isListed);
    for (const endpoint of ["token", "revocation", "introspection"]) {
      document[`${endpoint}_endpoint_auth_methods_supported`] = methods;
      if (!CIMD) delete document[`${endpoint}_endpoint_auth_signing_alg_values_supported`];
    }
  };
}
