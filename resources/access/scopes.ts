export const API_SCOPES = [
  "links:read",
  "links:write",
  "domains:read",
  "domains:write",
  "webhooks:read",
  "webhooks:write",
] as const;
export type ApiScope = (typeof API_SCOPES)[number];

export const SCOPE_DESCRIPTIONS: Record<ApiScope, string> = {
  "links:read": "View links, their clicks, and the organization.",
  "links:write": "Create, update and delete links.",
  "domains:read": "View the domains of the organization.",
  "domains:write": "Add, change, verify and delete domains.",
  "webhooks:read": "View webhooks and their deliveries.",
  "webhooks:write": "Create, update, test and delete webhooks.",
};

/** The roles of an organization's members, from the most to the least privileged. */
export const ROLES = ["owner", "admin", "member"] as const;
export type Role = (typeof ROLES)[number];
/** The roles that manage an organization. */
export const MANAGERS: readonly Role[] = ["owner", "admin"];

const MANAGEABLE_ROLES: Record<Role, readonly Role[]> = {
  owner: ROLES,
  admin: ["admin", "member"],
  member: [],
};

/** Returns the roles that a member with this role may grant, change and remove. */
export function manageableRoles(role: Role): readonly Role[] {
  return MANAGEABLE_ROLES[role];
}

/** The scopes that an app may have on behalf of a member: never more than the member may do in the dashboard. */
const SCOPES_OF_ROLE: Record<Role, readonly ApiScope[]> = {
  owner: API_SCOPES,
  admin: API_SCOPES,
  member: ["links:read", "links:write"],
};

export function scopesOfRole(role: Role): ApiScope[] {
  return [...SCOPES_OF_ROLE[role]];
}

/** Returns the scopes of a token that its user's role allows. `openid` and the like are always kept. */
export function allowedByRole(scopes: Iterable<string>, role: Role | undefined): string[] {
  const all = [...scopes];
  if (!role) return all;
  return all.filter((scope) => !isApiScope(scope) || SCOPES_OF_ROLE[role].includes(scope));
}

/** The scopes in the first challenge of MCP: enough for common tasks with a single consent. */
export const BASIC_SCOPES: readonly ApiScope[] = ["links:read", "links:write"];

/** The scopes in the challenge of the read-only MCP address. */
export const READ_SCOPES: readonly ApiScope[] = API_SCOPES.filter((scope) => scope.endsWith(":read"));

export function withImplied(scopes: Iterable<string>): Set<string> {
  const all = new Set(scopes);
  for (const scope of [...all]) {
    if (isApiScope(scope) && scope.endsWith(":write")) all.add(scope.replace(":write", ":read"));
  }
  return all;
}

export function withoutImplied(scopes: readonly string[]): string[] {
  return scopes.filter(
    (scope) => !scopes.includes(scope.replace(":read", ":write")) || !scope.endsWith(":read"),
  );
}

export function covers(granted: ReadonlySet<string>, required: readonly ApiScope[]): boolean {
  return required.every((scope) => granted.has(scope) || granted.has(scope.replace(":read", ":write")));
}

export function isApiScope(scope: string): scope is ApiScope {
  return (API_SCOPES as readonly string[]).includes(scope);
}
