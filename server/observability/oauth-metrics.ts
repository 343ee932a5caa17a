import type { Context } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";
import { Counter, type Registry } from "prom-client";
import { JWT_BEARER_GRANT } from "../../adapters/oauth/oidc/clients.ts";
import { endpointsByPath } from "../oauth-endpoints.ts";

declare module "koa" {
  interface DefaultState {
    /** The response of an authorization request may contain the code only as text. */
    authorizationError?: string;
  }
}

const GRANT_TYPES = new Set(["authorization_code", "refresh_token", "client_credentials", JWT_BEARER_GRANT]);

// An allowlist, because each label stays in memory. RFC 6749 §4.1.2.1 and §5.2, RFC 6750 §3.1, RFC 7009 §2.2.1, RFC 7591
// §3.2.2, RFC 8707 §2, RFC 9126 §2.3, RFC 9396 §5, RFC 9449 §5 and §7.1, OpenID Connect Core §3.1.2.6; and the codes of
// problems with which the API refuses a caller.
export const ERRORS = new Set([
  "access_denied",
  "consent_required",
  "insufficient_scope",
  "interaction_required",
  "invalid_client",
  "invalid_client_metadata",
  "invalid_dpop_proof",
  "invalid_grant",
  "invalid_redirect_uri",
  "invalid_request",
  "invalid_request_object",
  "invalid_request_uri",
  "invalid_scope",
  "invalid_target",
  "invalid_token",
  "login_required",
  "missing_token",
  "organization_suspended",
  "origin_not_allowed",
  "plan_required",
  "quota_exceeded",
  "rate_limited",
  "request_not_supported",
  "request_uri_not_supported",
  "server_error",
  "slow_down",
  "temporarily_unavailable",
  "unauthorized_client",
  "unsupported_grant_type",
  "unsupported_response_mode",
  "unsupported_response_type",
  "unsupported_token_type",
  "use_dpop_nonce",
]);

type Body = { error?: unknown; code?: unknown; active?: unknown } | null | undefined;

// Other problems of the API are about the content of a request.
const REFUSALS = new Set([401, 403, 429]);

/** Returns the function that counts an answered request. */
export function createOAuthMetrics(registry: Registry): (ctx: Context, route: string) => void {
  const registers = [registry];
  const grants = new Counter({
    name: "linkgate_grants_total",
    help: "Successful token requests by grant type",
    labelNames: ["grant_type"],
    registers,
  });
  for (const grant_type of GRANT_TYPES) grants.inc({ grant_type }, 0);
  const introspections = new Counter({
    name: "linkgate_introspections_total",
    help: "Introspected tokens by result",
    labelNames: ["result"],
    registers,
  });
  for (const result of ["active", "inactive"]) introspections.inc({ result }, 0);
  const refusals = new Counter({
    name: "linkgate_refusals_total",
    help: "Refused requests by endpoint and error code",
    labelNames: ["endpoint", "error"],
    registers,
  });

  return function countOutcome(ctx, route) {
    const endpoint = endpointOf(route);
    if (endpoint === undefined) return;
    const body = ctx.body as Body;
    const error = errorOf(ctx, endpoint, body);
    if (error !== undefined) refusals.inc({ endpoint, error: ERRORS.has(error) ? error : "other" });
    else if (endpoint === "token" && ctx.status === 200) grants.inc({ grant_type: grantTypeOf(ctx) });
    else if (endpoint === "introspection" && ctx.status === 200) {
      introspections.inc({ result: body?.active === true ? "active" : "inactive" });
    }
  };
}

function endpointOf(route: string): string | undefined {
  if (route.startsWith("/v1/")) return "api";
  if (route === "/mcp" || route === "/mcp/") return "mcp";
  const endpoint = endpointsByPath.get(route.replace("/:uid", ""));
  return endpoint?.metrics === "refusals" ? endpoint.name : undefined;
}

/** Returns undefined unless a response refuses a caller. */
function errorOf(ctx: Context, endpoint: string, body: Body): string | undefined {
  if (endpoint === "authorization") return ctx.state.authorizationError;
  if (endpoint === "api" || endpoint === "mcp")
    return REFUSALS.has(ctx.status) ? textOf(body?.code) : undefined;
  return ctx.status >= 400 ? textOf(body?.error) : undefined;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "other";
}

function grantTypeOf(ctx: Context): string {
  const grantType = String((ctx as unknown as Partial<KoaContextWithOIDC>).oidc?.params?.grant_type);
  return GRANT_TYPES.has(grantType) ? grantType : "other";
}
