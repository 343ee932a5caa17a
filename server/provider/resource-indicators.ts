import { type Client, errors, type KoaContextWithOIDC, type ResourceServer } from "oidc-provider";
import type { Addresses } from "../../resources/metadata.ts";
import { isPaid } from "../../resources/plans.ts";
import { API_SCOPES, allowedByRole, BASIC_SCOPES, isApiScope, type Role } from "../../resources/scopes.ts";
import { organizationOf } from "./clients.ts";

const ACCESS_TOKEN_S = 3600;

/**
 * The resources that tokens are for (RFC 8707), and which scopes a request for them gets. The library asks about
 * the resources late in every request that names scopes, when the client and its redirect URI are known: what is
 * refused here reaches the client.
 */
export function resourceIndicators(addresses: Addresses) {
  const { base, api, mcp } = addresses;
  const known = new Set([base, api, mcp]);
  return {
    enabled: true,

    /** Without `resource`: all three may be narrowed to later, and the one that stands for both is the default. */
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
      const areSeveral = route === "token" && Array.isArray(params?.resource); // RFC 8707 §2.2: one per token
      if (areSeveral || !known.has(resource)) throw new errors.InvalidTarget();
      const organization = organizationOf(client);
      if (organization && !isPaid(organization.plan)) throw planRequired();
      applyScopePolicy(ctx);
      // Set by `findAccount` where a code or a refresh token is redeemed: a role that was lost takes its scopes along.
      const role = ctx.oidc.entities.Account?.role as Role | undefined;
      return {
        audience: resource,
        scope: allowedByRole(API_SCOPES, role).join(" "),
        accessTokenTTL: ACCESS_TOKEN_S,
        accessTokenFormat: "opaque",
      };
    },
  };
}

/** What a client of an organization without a paid plan is told. */
export function planRequired() {
  return new errors.UnauthorizedClient(
    "the organization of this client needs the Growth or the Premium plan",
  );
}

/** Fills in the default scope, and drops or refuses what is unknown. */
function applyScopePolicy(ctx: KoaContextWithOIDC): void {
  const { oidc } = ctx;
  const { params, route } = oidc;
  if (!params) return;
  const asked = [...oidc.requestParamScopes].filter(Boolean);
  if (route === "token") {
    if (params.grant_type === "client_credentials") params.scope = clientCredentialsScope(asked);
    return;
  }
  if (asked.length === 0) {
    // The library has dropped an `offline_access` that stood alone.
    if (ctx.query.scope || oidc.body?.scope) throw nothingKnown("offline_access");
    params.scope = BASIC_SCOPES.join(" ");
    return;
  }
  const granted = asked.filter(
    (scope) => isApiScope(scope) || scope === "openid" || scope === "offline_access",
  );
  if (!granted.some((scope) => scope !== "offline_access")) {
    throw nothingKnown(asked.join(" "));
  }
  params.scope = granted.join(" ");
}

function nothingKnown(asked: string) {
  return new errors.InvalidScope("none of the requested scopes is one to ask for", asked);
}

function clientCredentialsScope(asked: string[]): string {
  if (asked.length === 0) return API_SCOPES.join(" ");
  // There is no person to identify, and no refresh token (RFC 6749 §4.4.3).
  const scopes = asked.filter((scope) => scope !== "openid" && scope !== "offline_access");
  const unknown = scopes.filter((scope) => !isApiScope(scope));
  if (unknown.length || scopes.length === 0) {
    throw new errors.InvalidScope(
      "requested scope is not known",
      (unknown.length ? unknown : asked).join(" "),
    );
  }
  return [...new Set(scopes)].join(" ");
}

// Not the URL parser: it also takes away users, empty fragments, dots and spaces, which make another resource.
const RESOURCE = /^([a-z]+:\/\/[^/]+)(.*?)\/?$/i;

/**
 * One form for each resource, so that a trailing slash or an upper-case host at one step and not at another does not
 * part what belongs together. Whatever is no URL is left as it is, to be refused.
 */
export function canonicalResource(resource: string): string {
  const [, origin, path] = RESOURCE.exec(resource) ?? [];
  return origin === undefined ? resource : origin.toLowerCase() + path;
}
