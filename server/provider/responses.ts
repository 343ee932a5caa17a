import type { Context, Middleware } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";
import { errorUrl } from "../../resources/http/problem.ts";
import { KEY_SET_MAX_AGE } from "../keys/shared-keys.ts";
import { ENDPOINTS, endpointsByPath, METADATA_PATHS } from "../oauth-endpoints.ts";
import type { Settings } from "../settings/config.ts";
import { completeDiscovery } from "./discovery.ts";
import { isOauthPath } from "./endpoints.ts";
import { completeIntrospection } from "./introspection.ts";

/** Completes the responses of oidc-provider where it has no option for it. */
export function completeResponses(settings: Settings): Middleware {
  const steps = new Map<string, (ctx: Context) => void>([
    ...METADATA_PATHS.map((path) => [path, completeDiscovery(settings)] as const),
    [ENDPOINTS.jwks.path, completeKeySet],
    [ENDPOINTS.token.path, completeTokenResponse],
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

type TokenResponse = { error?: string; scope?: string };

/** Sets headers, lists `offline_access` if it was granted, and names the error of a grant type that isn't allowed. */
function completeTokenResponse(ctx: Context): void {
  ctx.set("Pragma", "no-cache"); // RFC 6749 §5.1
  const body = ctx.body as TokenResponse | undefined;
  const { oidc } = ctx as unknown as KoaContextWithOIDC;
  if (body?.scope && isOffline(oidc)) body.scope += " offline_access";
  if (body?.error !== "invalid_request") return;
  const { client, params } = oidc;
  const type = params?.grant_type;
  if (client && typeof type === "string" && !client.grantTypeAllowed(type)) {
    body.error = "unauthorized_client";
  }
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

type ErrorResponse = { error?: unknown; error_uri?: string } | null | undefined;

/** Links each error to the page of its code (RFC 6749 §5.2). */
export function linkErrors(base: string): Middleware {
  return async function addErrorUri(ctx, next) {
    await next();
    const body = ctx.body as ErrorResponse;
    if (isOauthPath(ctx) && typeof body?.error === "string") body.error_uri = errorUrl(base, body.error);
  };
}

/** Makes oidc-provider respond with JSON (RFC 6749 §5.2) even to clients that accept `text/html`, such as Java's. */
export const acceptJson: Middleware = function replaceAcceptHeader({ req }, next) {
  req.headers.accept = "application/json";
  return next();
};
