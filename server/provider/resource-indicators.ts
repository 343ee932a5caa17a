import {
  type Client,
  type Configuration,
  errors,
  type KoaContextWithOIDC,
  type ResourceServer,
} from "oidc-provider";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import {
  API_SCOPES,
  allowedByRole,
  BASIC_SCOPES,
  isApiScope,
  type Role,
  withImplied,
} from "../../resources/access/scopes.ts";
import { organizationOf } from "../clients/client-metadata.ts";
import { ACCESS_TOKEN_LIFETIME } from "../settings/token-lifetimes.ts";
import { requireProof } from "./dpop.ts";
import { requireUsable } from "./require-api-access.ts";
import type { Workload } from "./workloads.ts";

/** Workloads need no refresh token: their platform gives them new tokens. */
const WORKLOAD_TOKEN_LIFETIME_S = 900;

/** RFC 8707. oidc-provider asks when client and redirect URI are known, so errors thrown here reach the client. */
export function resourceIndicators(urls: PublicUrls) {
  const { base, api, mcp, mcpRead } = urls;
  const resources = new Set([base, api, mcp, mcpRead]);
  return {
    enabled: true,

    /** Without `resource`, these three are granted: a token request may pick one, and defaults to the one that covers all. */
    async defaultResource(ctx: KoaContextWithOIDC, _client: Client, oneOf?: readonly string[]) {
      if (oneOf) return oneOf.includes(base) ? base : oneOf;
      return ctx.oidc.route === "token" ? base : [base, api, mcp];
    },

    useGrantedResource: async () => true,

    async getResourceServerInfo(
      ctx: KoaContextWithOIDC,
      resource: string,
      client: Client,
    ): Promise<ResourceServer> {
      const { params, route } = ctx.oidc;
      const hasSeveral = route === "token" && Array.isArray(params?.resource); // RFC 8707 §2.2: one per token
      if (hasSeveral || !resources.has(resource)) throw new errors.InvalidTarget();
      requireUsable(client);
      if (route === "token") requireProof(ctx, organizationOf(client));
      applyScopePolicy(ctx);
      // Set by `findAccount` when a code or a refresh token is redeemed: a user who loses a role loses its scopes.
      const role = ctx.oidc.entities.Account?.role as Role | undefined;
      return {
        audience: resource,
        scope: ["openid", ...allowedByRole(API_SCOPES, role)].join(" "),
        accessTokenFormat: "opaque",
      };
    },
  };
}

function workloadOf({ oidc }: KoaContextWithOIDC): Workload | undefined {
  return oidc.entities.Workload as Workload | undefined;
}

export function clientCredentialsLifetime(ctx: KoaContextWithOIDC): number {
  return workloadOf(ctx) ? WORKLOAD_TOKEN_LIFETIME_S : ACCESS_TOKEN_LIFETIME;
}

/**
 * Uses up the token of a workload right before the access token is stored, after every other check. A request with a typo
 * can be repeated with the same token: Kubernetes gives a pod no other one for minutes.
 */
export const useWorkloadToken: Configuration["extraTokenClaims"] = async (ctx) => {
  await (ctx?.oidc && workloadOf(ctx)?.useOnce());
  return undefined;
};

function applyScopePolicy(ctx: KoaContextWithOIDC): void {
  const { oidc } = ctx;
  const { params, route } = oidc;
  if (!params) return;
  const requested = [...oidc.requestParamScopes].filter(Boolean);
  if (route === "token") {
    if (params.grant_type === "client_credentials") {
      const workload = workloadOf(ctx);
      params.scope = workload ? workloadScope(requested, workload.scopes) : clientCredentialsScope(requested);
    }
    return;
  }
  if (requested.length === 0) {
    // oidc-provider has dropped `offline_access` as the only scope.
    if (ctx.query.scope || oidc.body?.scope) throw unknownScopes("offline_access");
    params.scope = BASIC_SCOPES.join(" ");
    return;
  }
  const granted = requested.filter(
    (scope) => isApiScope(scope) || scope === "openid" || scope === "offline_access",
  );
  if (!granted.some((scope) => scope !== "offline_access")) throw unknownScopes(requested.join(" "));
  params.scope = granted.join(" ");
}

function unknownScopes(requested: string) {
  return new errors.InvalidScope("none of the requested scopes is supported", requested);
}

/** Returns the granted scopes; if none were requested, all scopes of the API. Throws InvalidScope. */
export function clientCredentialsScope(requested: string[]): string {
  if (requested.length === 0) return API_SCOPES.join(" ");
  // There is no user to identify, and no refresh token (RFC 6749 §4.4.3).
  const scopes = requested.filter((scope) => scope !== "openid" && scope !== "offline_access");
  const unknown = scopes.filter((scope) => !isApiScope(scope));
  if (unknown.length || scopes.length === 0)
    throw new errors.InvalidScope(
      "requested scope is not supported",
      (unknown.length ? unknown : requested).join(" "),
    );
  return [...new Set(scopes)].join(" ");
}

/** Returns what the matching trust rules allow of the requested scopes. Throws InvalidScope. */
export function workloadScope(requested: string[], allowed: readonly string[]): string {
  if (requested.length === 0) return allowed.join(" ");
  const covered = withImplied(allowed);
  const granted = clientCredentialsScope(requested)
    .split(" ")
    .filter((scope) => covered.has(scope));
  if (granted.length > 0) return granted.join(" ");
  throw new errors.InvalidScope("the trust rule allows none of the requested scopes", requested.join(" "));
}

// Not the URL parser: it also drops credentials, empty fragments, dot segments and spaces, which make another resource.
const ORIGIN = /^[a-z]+:\/\/[^/]+/i;

/** A trailing slash or an upper-case host must not make two requests differ. Anything but a URL is rejected later. */
export function canonicalResource(resource: string): string {
  const [origin] = ORIGIN.exec(resource) ?? [];
  if (origin === undefined) return resource;
  const path = resource.slice(origin.length);
  return origin.toLowerCase() + (path.endsWith("/") ? path.slice(0, -1) : path);
}
