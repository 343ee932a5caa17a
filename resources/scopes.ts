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
