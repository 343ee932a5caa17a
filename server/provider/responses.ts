import type { Context, Middleware } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";
import { DEVICE_GRANT } from "../../adapters/oauth/oidc/clients.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { API_SCOPES } from "../../resources/access/scopes.ts";
import { errorUrl } from "../../resources/http/problem.ts";
import { KEY_SET_MAX_AGE } from "../keys/shared-keys.ts";
import { ENDPOINTS, endpointsByPath, METADATA_PATHS } from "../oauth-endpoints.ts";
import type { Settings } from "../settings/config.ts";
import { isOauthPath } from "./endpoints.ts";
import { completeIntrospection } from "./introspection.ts";

type PollLimit = { isPollTooEarly(deviceCode: string): Promise<boolean> };

/** Completes the responses of oidc-provider where it has no option for it. */
export function completeResponses(settings: Settings, limits: PollLimit): Middleware {
  const steps = new Map<string, (ctx: Context) => void | Promise<void>>([
    ...METADATA_PATHS.map((path) => [path, completeDiscovery(settings)] as const),
    [ENDPOINTS.jwks.path, completeKeySet],
    [ENDPOINTS.token.path, completeTokenResponse(limits)],
    [ENDPOINTS.device_authorization.path, completeDeviceAuthorization],
    [ENDPOINTS.revocation.path, completeRevocation],
    [ENDPOINTS.introspection.path, completeIntrospection],
  ]);
  return function completeResponse(ctx, next) {
    const complete = steps.get(ctx.path);
    return complete ? next().then(() => complete(ctx)) : next();
  };
}

function completeKeySet(ctx: Context): void {
  if (ctx.status === 200) ctx.set("Cache-Control", `public, max-age=${KEY_SET_MAX_AGE}`);
}

type TokenResponse = { error?: string; error_description?: string; scope?: string };

/** Sets headers, lists `offline_access` if it was granted, and names errors that oidc-provider doesn't. */
const completeTokenResponse = (limits: PollLimit) => async (ctx: Context) => {
  ctx.set("Pragma", "no-cache"); // RFC 6749 §5.1
  const body = ctx.body as TokenResponse | undefined;
  const { oidc } = ctx as unknown as KoaContextWithOIDC;
  if (body?.scope && isOffline(oidc)) body.scope += " offline_access";
  const { params } = oidc;
  if (body?.error === "authorization_pending" && (await limits.isPollTooEarly(String(params?.device_code)))) {
    body.error = "slow_down"; // RFC 8628 §3.5
    body.error_description = "the device polls too often, wait 5 seconds longer";
  }
  nameForbiddenGrant(ctx, params?.grant_type);
};

/** RFC 8628 §3.2. */
function completeDeviceAuthorization(ctx: Context): void {
  if (ctx.status === 200) Object.assign(ctx.body as object, { interval: 5 });
  nameForbiddenGrant(ctx, DEVICE_GRANT);
}

/** RFC 6749 §5.2. */
function nameForbiddenGrant(ctx: Context, type: unknown): void {
  const body = ctx.body as TokenResponse | undefined;
  const { client } = (ctx as unknown as KoaContextWithOIDC).oidc;
  const isForbidden = client && typeof type === "string" && !client.grantTypeAllowed(type);
  if (body?.error === "invalid_request" && isForbidden) body.error = "unauthorized_client";
}

/** RFC 6749 §5.1: the response has the granted scope. oidc-provider lists only the scope of the access token. */
function isOffline({ entities, params, requestParamScopes }: KoaContextWithOIDC["oidc"]): boolean {
  const isNarrowed = params?.grant_type === "refresh_token" && Boolean(params.scope); // RFC 6749 §6
  if (isNarrowed && !requestParamScopes.has("offline_access")) return false;
  return entities.RefreshToken?.scope?.split(" ").includes("offline_access") ?? false;
}

/** RFC 7009 §2.2: an unknown token is no error. Clients that parse every response as JSON get an empty object. */
function completeRevocation(ctx: Context): void {
  ctx.set("Cache-Control", "no-store");
  if (ctx.status === 200) ctx.body = {};
}

/**
 * Lets only listed browser origins read OAuth responses, because oidc-provider allows every origin in a preflight.
 * The authorization endpoint has no CORS headers (RFC 9700 §2.6).
 */
export function oauthCors(origins: ReadonlySet<string>): Middleware {
  return async function restrictOrigins(ctx, next) {
    const origin = ctx.get("origin");
    const isPublic = endpointsByPath.get(ctx.path)?.origins === "every";
    // Only browsers send an origin, and only they heed these headers.
    if ((!origin && ctx.method !== "OPTIONS") || isPublic) return next();
    const isAllowed = origins.has(origin);
    if (ctx.method === "OPTIONS" && !isAllowed) {
      ctx.status = 204;
      return;
    }
    await next();
    if (isAllowed) return;
    for (const name of Object.keys(ctx.response.headers)) {
      if (name.toLowerCase().startsWith("access-control-")) ctx.remove(name);
    }
  };
}

/** Links each error to the page of its code (RFC 6749 §5.2). */
export function linkErrors(base: string): Middleware {
  return async function addErrorUri(ctx, next) {
    await next();
    const body = ctx.body as { error?: unknown; error_uri?: string } | null | undefined;
    if (isOauthPath(ctx) && typeof body?.error === "string") body.error_uri = errorUrl(base, body.error);
  };
}

/** Makes oidc-provider respond with JSON (RFC 6749 §5.2) even to clients that accept `text/html`, such as Java's. */
export const acceptJson: Middleware = function replaceAcceptHeader({ req }, next) {
  req.headers.accept = "application/json";
  return next();
};

// Only a new version or setting changes the document. Clients and shared caches may keep it for an hour.
const CACHE_CONTROL = "public, max-age=3600";

// draft-ietf-oauth-identity-assertion-authz-grant §7.2
const ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag";

/** RFC 8414 §2. Omits the authentication method of public clients if none are accepted. */
export function completeDiscovery({
  CIMD,
  DYNAMIC_REGISTRATION,
  DEVICE_GRANT: hasDeviceGrant,
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
    if (!hasDeviceGrant) {
      delete document.device_authorization_endpoint;
      document.grant_types_supported = (document.grant_types_supported as string[]).filter(
        (type) => type !== DEVICE_GRANT,
      );
    }
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

/**
 * For ChatGPT, which looks for the metadata of the authorization server on the host of the MCP server, at its path and
 * without it. On a host that both share, it finds the issuer's own, and RFC 8414 §3.3 allows no other.
 */
export function serveMetadataOfMcp({ base, mcp }: PublicUrls): Middleware {
  const { host } = new URL(base);
  const { host: mcpHost, pathname } = new URL(mcp);
  const paths = new Map(METADATA_PATHS.flatMap((path) => [path, path + pathname].map((at) => [at, path])));
  return function useMetadataPath(ctx, next) {
    const path = host !== mcpHost && ctx.get("host") === mcpHost && paths.get(ctx.path);
    if (path) {
      ctx.path = path;
      // oidc-provider builds its URLs from the request.
      ctx.req.headers.host = host;
    }
    return next();
  };
}
