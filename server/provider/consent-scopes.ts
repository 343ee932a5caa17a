import type { Grant, KoaContextWithOIDC } from "oidc-provider";
import { allowedByRole, type Role, withImplied } from "../../resources/access/scopes.ts";

/** The scopes of an authorization request: those of OpenID Connect, and those of each resource. */
export type RequestedScopes = { openid: string[]; resources: Record<string, string[]> };

/** Returns the scopes that an authorization request asks for. */
export function requestedScopesOf({ oidc }: KoaContextWithOIDC): RequestedScopes {
  const requested = [...oidc.requestParamScopes];
  const resources = Object.entries(oidc.resourceServers ?? {}).map(
    ([resource, { scopes }]) => [resource, requested.filter((scope) => scopes.has(scope))] as const,
  );
  return {
    openid: [...oidc.requestParamOIDCScopes],
    resources: Object.fromEntries(resources.filter(([, scopes]) => scopes.length > 0)),
  };
}

/** Grants scopes as far as a role allows them. The others are rejected, so oidc-provider doesn't prompt for them again. */
export function grantScopes(grant: Grant, { openid, resources }: RequestedScopes, role: Role): void {
  if (openid.length > 0) grant.addOIDCScope(openid.join(" "));
  for (const [resource, scopes] of Object.entries(resources)) {
    const allowed = allowedByRole(scopes, role);
    const rejected = scopes.filter((scope) => !allowed.includes(scope));
    grant.addResourceScope(resource, [...withImplied(allowed)].join(" "));
    if (rejected.length > 0) grant.rejectResourceScope(resource, rejected.join(" "));
  }
}

/** Returns whether a grant allows everything that another one does. */
export function covers(grant: Grant, other: Grant): boolean {
  const resources = Object.keys(other.resources ?? {});
  return (
    isSubset(other.getOIDCScope(), grant.getOIDCScope()) &&
    resources.every((resource) =>
      isSubset(other.getResourceScope(resource), grant.getResourceScope(resource)),
    )
  );
}

function isSubset(scope: string, of: string): boolean {
  const all = new Set(of.split(" "));
  return scope.split(" ").every((one) => one === "" || all.has(one));
}
