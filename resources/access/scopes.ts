/** The OAuth scopes of the API and MCP. */
export const API_SCOPES = ["links:read", "links:write", "webhooks:read", "webhooks:write"] as const;
export type ApiScope = (typeof API_SCOPES)[number];

/** Descriptions of the scopes, for the documentation and the consent page. */
export const SCOPE_DESCRIPTIONS: Record<ApiScope, string> = {
  "links:read": "View links, their clicks, and the organization.",
  "links:write": "Create, update and delete links.",
  "webhooks:read": "View webhooks and their deliveries.",
  "webhooks:write": "Create, update, test and delete webhooks.",
};

/** The roles of an organization's members, from the most to the least privileged. */
export type Role = "owner" | "admin" | "member";

/** The scopes that an app may have on behalf of a member: never more than the member may do in the dashboard. */
const SCOPES_OF_ROLE: Record<Role, readonly ApiScope[]> = {
  owner: API_SCOPES,
  admin: API_SCOPES,
  member: ["links:read", "links:write"],
};

/** Returns the scopes that a role allows. */
export function scopesOfRole(role: Role): ApiScope[] {
  return [...SCOPES_OF_ROLE[role]];
}

/**
 * Returns the scopes of a token that its user's role allows. Scopes of neither the API nor MCP (`openid`,
 * `offline_access`) are always kept.
 * @param role absent for client credentials, which act for the organization itself
 */
export function allowedByRole(scopes: Iterable<string>, role: Role | undefined): string[] {
  const all = [...scopes];
  if (!role) return all;
  return all.filter((scope) => !isApiScope(scope) || SCOPES_OF_ROLE[role].includes(scope));
}

/** The scopes in the first challenge of MCP: enough for common tasks with a single consent. */
export const BASIC_SCOPES: readonly ApiScope[] = ["links:read", "links:write"];

/** Returns a set of scopes with the read scope that each write scope includes. */
export function withImplied(scopes: Iterable<string>): Set<string> {
  const all = new Set(scopes);
  for (const scope of [...all]) {
    if (isApiScope(scope) && scope.endsWith(":write")) all.add(scope.replace(":write", ":read"));
  }
  return all;
}

/** Returns scopes without the read scopes that a write scope already includes. */
export function withoutImplied(scopes: readonly string[]): string[] {
  return scopes.filter(
    (scope) => !scopes.includes(scope.replace(":read", ":write")) || !scope.endsWith(":read"),
  );
}

/** Returns whether granted scopes, with those they imply, include every required one. */
export function covers(granted: ReadonlySet<string>, required: readonly ApiScope[]): boolean {
  return required.every((scope) => granted.has(scope) || granted.has(scope.replace(":read", ":write")));
}

export function isApiScope(scope: string): scope is ApiScope {
  return (API_SCOPES as readonly string[]).includes(scope);
}
