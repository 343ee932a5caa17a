import type { Grant, KoaContextWithOIDC } from "oidc-provider";
import { allowedByRole, type Role, withImplied } from "../../resources/access/scopes.ts";

export type RequestedScopes = { openid: string[]; resources: Record<string, string[]> };

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

/** Rejects scopes that a role doesn't allow, so oidc-provider doesn't prompt for them again. */
export function grantScopes(grant: Grant, { openid, resources }: RequestedScopes, role: Role): void {
  if (openid.length > 0) grant.addOIDCScope(openid.join(" "));
  for (const [resource, scopes] of Object.entries(resources)) {
    const allowed = allowedByRole(scopes, role);
    const rejected = scopes.filter((scope) => !allowed.includes(scope));
    grant.addResourceScope(resource, [...withImplied(allowed)].join(" "));
    if (rejected.length > 0) grant.rejectResourceScope(resource, rejected.join(" "));
  }
}

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
