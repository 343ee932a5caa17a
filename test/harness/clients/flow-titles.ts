/** What a client library can do, as it stands in the titles of the tests. */
export const FLOWS = {
  clientCredentials: "gets a token by client credentials",
  code: "signs a user in by code and PKCE",
  userinfo: "reads the claims of the user",
  refresh: "refreshes an access token",
  revocation: "revokes a grant",
  error: "reports why a code is refused",
  introspection: "accepts a token by introspection",
} as const;

export type Flow = keyof typeof FLOWS;
