import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 7009,
  name: "Token Revocation",
  clauses: [
    {
      section: "2",
      rule: "The endpoint supports the revocation of refresh tokens.",
      tests: [
        "server/provider/revocation: revoking a user's access or refresh token immediately revokes the whole grant",
      ],
    },
    {
      section: "2",
      rule: "The address of the endpoint has no fragment, and a query in it is kept.",
      tests: ["conformance/rfc/6749: the address of no endpoint has a query or a fragment"],
    },
    {
      section: "2",
      rule: "Unknown and empty parameters are ignored, and none is repeated.",
      tests: [
        "server/provider/token-endpoint: a repeated parameter is rejected at each endpoint",
        "server/provider/revocation: a revocation without a token is rejected with invalid_request",
        "conformance/rfc/7009: a revocation ignores unknown parameters",
      ],
    },
    {
      section: "2",
      rule: "The address of the endpoint is https, and no http address is published.",
      tests: [
        "server/http/https: every URL in the metadata is https at the configured host, although the proxy speaks http",
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
      ],
    },
    {
      section: "2",
      rule: "The server uses TLS.",
      why: "TLS ends in a proxy in front of the server",
    },
    {
      section: "2.1",
      rule: "The request has a token.",
      tests: ["server/provider/revocation: a revocation without a token is rejected with invalid_request"],
    },
    {
      section: "2.1",
      rule: "A token that isn't of the kind in the hint is searched for among all kinds.",
      tests: [
        "server/provider/revocation: every kind of token is revoked with the hint ${JSON.stringify(hint)}",
      ],
    },
    {
      section: "2.1",
      rule: "The client authenticates, and only a token that was issued to it is revoked.",
      tests: [
        "server/provider/client-authentication: a request with ${what} is rejected at ${endpoint}",
        "server/provider/revocation: another client can't revoke a token",
        "server/provider/revocation: the public client can't revoke another client's token",
      ],
    },
    {
      section: "2.1",
      rule: "The token can't be used from then on.",
      tests: [
        "server/provider/revocation: every kind of token is revoked with the hint ${JSON.stringify(hint)}",
        "server/provider/two-processes: a token revoked at one process is rejected by the other's next response",
      ],
    },
    {
      section: "2.2",
      rule: "The response to an invalid token has the status 200.",
      tests: [
        "server/provider/revocation: unknown, expired, revoked, foreign and malformed tokens get the same response as a valid one",
      ],
    },
    {
      section: "2.2",
      rule: "An unknown hint is ignored.",
      tests: [
        "server/provider/revocation: every kind of token is revoked with the hint ${JSON.stringify(hint)}",
      ],
    },
    {
      section: "5",
      rule: "The endpoint is protected against floods of requests like the token endpoint.",
      tests: [
        "server/rate-limits/client-authentication: guesses of a secret at ${endpoint} get 429, while the client is served on other networks",
        "server/provider/token-endpoint: a body with ${what} gets a 4xx error at ${endpoint}",
      ],
    },
    {
      section: "5",
      rule: "Operators consider that access tokens may outlive the refresh token that was revoked.",
      why: "access tokens are revoked with the refresh token",
    },
  ],
};
