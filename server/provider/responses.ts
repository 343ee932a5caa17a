import type { Context, Middleware } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";
import { isPaid } from "../../resources/plans.ts";
import type { ActiveToken } from "../../resources/ports.ts";
import { API_SCOPES, allowedByRole } from "../../resources/scopes.ts";
import type { Settings } from "../config.ts";
import { RESOURCE_SERVER } from "./clients.ts";

/** What oidc-provider answers, completed where it has no option for it. */
export function completeAnswers(settings: Settings): Middleware {
  const completions = new Map<string, Completion>([
    ["/.well-known/openid-configuration", discovery(settings)],
    ["/.well-known/oauth-authorization-server", discovery(settings)],
    ["/oauth/token", tokens],
    ["/oauth/revoke", revocation],
    ["/oauth/introspect", introspection],
  ]);
  return function completeAnswer(ctx, next) {
    const complete = completions.get(ctx.path);
    return complete ? next().then(() => complete(ctx)) : next();
  };
}

type Completion = (ctx: Context) => void;

/** RFC 8414 §2: the API's scopes, the one response mode, and no method that only our own client uses. */
function discovery({ CIMD }: Settings): Completion {
  const isListed = (method: string) => CIMD || method !== "none";
  return (ctx) => {
    const document = ctx.body as Record<string, unknown> | undefined;
    if (ctx.status !== 200 || typeof document?.issuer !== "string") return;
    document.scopes_supported = ["openid", "offline_access", ...API_SCOPES];
    document.response_modes_supported = ["query"];
    const methods = (document.token_endpoint_auth_methods_supported as string[]).filter(isListed);
    for (const endpoint of ["token", "revocation", "introspection"]) {
      document[`${endpoint}_endpoint_auth_methods_supported`] = methods;
    }
  };
}

function tokens(ctx: Context): void {
  const body = ctx.body as { id_token?: string; scope?: string; error?: string } | undefined;
  // RFC 6749 §5.1: `scope` tells all that was granted; the library leaves out `openid` beside a resource.
  if (body?.id_token) body.scope = ["openid", body.scope].filter(Boolean).join(" ");
  // RFC 6749 §5.2: a grant type that is not the client's has an error of its own.
  if (body?.error !== "invalid_request") return;
  const { client, params } = (ctx as unknown as KoaContextWithOIDC).oidc;
  const type = params?.grant_type;
  if (client && typeof type === "string" && !client.grantTypeAllowed(type))
    body.error = "unauthorized_client";
}

/** RFC 7009 §2.2: what cannot be a token of ours is an unknown one, and that is no error. */
function revocation(ctx: Context): void {
  ctx.set("Cache-Control", "no-store");
  if (!isUnsupportedToken(ctx)) return;
  ctx.status = 200;
  ctx.remove("Content-Type"); // of the error
  ctx.body = "";
}

/**
 * RFC 7662 §2.2: whatever is not live for this caller is exactly `{"active":false}`. An access token was found with all
 * that its life depends on, as the resources find it, and `resource-server` is told for whom it is.
 */
function introspection(ctx: Context): void {
  const body = ctx.body as { active?: boolean; token_type?: string } | undefined;
  const isAccessToken = body?.active && body.token_type; // a refresh token has no type
  if (isAccessToken) describeAccessToken(ctx, body);
  else if (isUnsupportedToken(ctx)) inactive(ctx);
  else if (ctx.status === 400 && isAnonymous(ctx)) requireAuthentication(ctx);
}

/** Returns whether a request carries no client authentication at all, not even a malformed one. */
function isAnonymous(ctx: Context): boolean {
  const { params } = (ctx as unknown as KoaContextWithOIDC).oidc;
  if (!params || ctx.get("authorization")) return false;
  return !params.client_id && !params.client_secret && !params.client_assertion;
}

/** RFC 7662 §2.1 and §2.3, RFC 6749 §5.2: the library calls this a bad request. */
function requireAuthentication(ctx: Context): void {
  ctx.status = 401;
  ctx.set("WWW-Authenticate", `Basic realm="${(ctx as unknown as KoaContextWithOIDC).oidc.provider.issuer}"`);
  ctx.body = { error: "invalid_client", error_description: "client authentication is required" };
}

function describeAccessToken(ctx: Context, body: object): void {
  const { client, entities } = (ctx as unknown as KoaContextWithOIDC).oidc;
  const { active } = (entities.AccessToken ?? entities.ClientCredentials) as { active?: ActiveToken };
  const seesAll = client?.clientId === RESOURCE_SERVER;
  if (!active || (!seesAll && !isPaid(active.plan))) {
    inactive(ctx);
    return;
  }
  Object.assign(body, { scope: allowedByRole(active.scopes, active.role).join(" ") || undefined });
  if (seesAll) Object.assign(body, { organization_id: active.organizationId, plan: active.plan });
}

function inactive(ctx: Context): void {
  ctx.status = 200;
  ctx.body = { active: false };
}

/** The library knows a JWT by its looks, and says so only to an authenticated client. */
function isUnsupportedToken(ctx: Context): boolean {
  return (
    ctx.status === 400 && (ctx.body as { error?: string } | undefined)?.error === "unsupported_token_type"
  );
}
