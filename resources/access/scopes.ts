/** What a token may be granted for the API and MCP. */
export const API_SCOPES = ["links:read", "links:write", "webhooks:read", "webhooks:write"] as const;
export type ApiScope = (typeof API_SCOPES)[number];

/** What each scope opens. */
export const SCOPE_MEANINGS: Record<ApiScope, string> = {
  "links:read": "See links, their clicks, and the organization.",
  "links:write": "Make, change and delete links.",
  "webhooks:read": "See webhooks and their deliveries.",
  "webhooks:write": "Make, change, test and delete webhooks.",
};

/** The roles of an organization's members, from the most to the least privileged. */
export type Role = "owner" | "admin" | "member";

/** The scopes that an app may hold in the name of a member: never more than the member may do in the dashboard. */
const SCOPES_OF_ROLE: Record<Role, readonly ApiScope[]> = {
  owner: API_SCOPES,
  admin: API_SCOPES,
  member: ["links:read", "links:write"],
};

/**
 * Returns the scopes that remain for a token that acts for a user with this role. Scopes that open neither the API nor
 * MCP (`openid`, `offline_access`) always remain.
 * @param role absent for client credentials, which act for the organization itself
 */
export function allowedByRole(scopes: Iterable<string>, role: Role | undefined): string[] {
  const all = [...scopes];
  if (!role) return all;
  return all.filter((scope) => !isApiScope(scope) || SCOPES_OF_ROLE[role].includes(scope));
}

/** What the first challenge of MCP asks for: enough for usual work in one consent. */
export const BASIC_SCOPES: readonly ApiScope[] = ["links:read", "links:write"];

/** A set of scopes with the read scope that each write scope includes. */
export function withImplied(scopes: Iterable<string>): Set<string> {
  const all = new Set(scopes);
  for (const scope of [...all]) {
    if (isApiScope(scope) && scope.endsWith(":write")) all.add(scope.replace(":write", ":read"));
  }
  return all;
}

/** A set of scopes without the read scopes that go without saying. */
export function withoutImplied(scopes: readonly string[]): string[] {
  return scopes.filter(
    (scope) => !scopes.includes(scope.replace(":read", ":write")) || !scope.endsWith(":read"),
  );
}

/** Whether `granted` covers every scope that is needed. */
export function covers(granted: Iterable<string>, needed: readonly ApiScope[]): boolean {
  const all = withImplied(granted);
  return needed.every((scope) => all.has(scope));
}

/** Whether a name is one of the API's scopes. */
export function isApiScope(scope: string): scope is ApiScope {
  return (API_SCOPES as readonly string[]).includes(scope);
}
