import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 7662,
  name: "Token Introspection",
  clauses: [
    {
      section: "2",
      rule: "The endpoint is protected by TLS: its address is https.",
      tests: [
        "server/http/https: every URL in the metadata is https at the configured host, although the proxy speaks http",
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
      ],
    },
    {
      section: "2.1",
      rule: "The request has a token.",
      tests: [
        "server/provider/introspection: introspection without a token is rejected with invalid_request",
      ],
    },
    {
      section: "2.1",
      rule: "A token that isn't of the kind in the hint is searched for among all kinds.",
      tests: [
        "server/provider/introspection: a client's tokens of every kind are found with the hint ${JSON.stringify(hint)}",
      ],
    },
    {
      section: "2.1",
      rule: "The endpoint requires authentication.",
      tests: [
        "server/provider/client-authentication: a request with ${what} is rejected at ${endpoint}",
        "server/provider/introspection: resource-server must authenticate with its secret",
        "server/provider/registered-clients: a public client can't introspect its own token",
      ],
    },
    {
      section: "2.2",
      rule: "The response says whether the token is active.",
      tests: [
        "server/provider/introspection: a client sees its own token",
        'server/provider/introspection: the response for ${JSON.stringify(token.slice(0, 40))} is exactly {"active":false} for every caller',
      ],
    },
    {
      section: "2.2",
      rule: "Names of members for several domains are registered.",
      why: "organization_id, plan and suspended are for this service only",
    },
    {
      section: "2.2",
      rule: "A token that isn't active, is unknown, or that the caller may not see is inactive.",
      tests: [
        'server/provider/introspection: the response for expired and revoked tokens is exactly {"active":false}',
        'server/provider/introspection: the response for ${JSON.stringify(token.slice(0, 40))} is exactly {"active":false} for every caller',
        "server/provider/introspection: another client's tokens are inactive with the hint ${hint}",
      ],
    },
    {
      section: "2.3",
      rule: "A request about an invalid token is no error.",
      tests: [
        'server/provider/introspection: the response for expired and revoked tokens is exactly {"active":false}',
        'server/provider/introspection: the response for ${JSON.stringify(token.slice(0, 40))} is exactly {"active":false} for every caller',
      ],
    },
    {
      section: "4",
      rule: "Everything that makes a token inactive is checked.",
      tests: [
        "server/provider/introspection: after a downgrade of the ${which}'s organization its tokens are inactive, except for resource-server",
        "server/provider/require-dpop: if the organization ${which} requires DPoP, earlier bearer tokens are refused everywhere",
        "server/provider/switches: when ${name}, exactly what depends on it stops with the next request",
      ],
    },
    {
      section: "4",
      rule: "It is checked whether the token has expired.",
      tests: [
        'server/provider/introspection: the response for expired and revoked tokens is exactly {"active":false}',
        "server/provider/refresh-tokens: an access token expires after one hour",
      ],
    },
    {
      section: "4",
      rule: "It is checked whether the token is valid already.",
      why: "every token is valid from its issue on",
    },
    {
      section: "4",
      rule: "It is checked whether the token was revoked.",
      tests: [
        'server/provider/introspection: the response for expired and revoked tokens is exactly {"active":false}',
        "server/provider/introspection: a rotated refresh token is inactive after the retry window, and a code is always inactive",
      ],
    },
    {
      section: "4",
      rule: "The signature of a signed token is verified.",
      why: "tokens are not signed",
    },
    {
      section: "4",
      rule: "It is checked whether the token can be used at the resource server that asks.",
      tests: [
        "server/provider/introspection: resource-server sees no refresh tokens",
        "server/auth/token-separation: introspection reports a first-party token as inactive to every client and to the resource server",
      ],
    },
    {
      section: "4",
      rule: "A response isn't cached beyond the expiry of the token.",
      tests: [
        "conformance/rfc/7662: a resource server doesn't accept a token that it introspected before it expired",
      ],
    },
    {
      section: "4",
      rule: "Resource servers authenticate, which prevents token scanning.",
      tests: [
        "server/provider/introspection: resource-server must authenticate with its secret",
        "server/provider/introspection: without RESOURCE_SERVER_SECRET the client resource-server does not exist",
      ],
    },
    {
      section: "4",
      rule: "The server supports TLS 1.2.",
      why: "TLS ends in a proxy in front of the server",
    },
    {
      section: "4",
      rule: "The resource server verifies the certificate of the authorization server.",
      tests: [
        "conformance/rfc/7662: a resource server sends no token to a server whose certificate it can't verify",
      ],
    },
    {
      section: "5",
      rule: "Personal data in the response is disclosed to its intended recipients only.",
      tests: [
        "server/provider/introspection: another client's tokens are inactive with the hint ${hint}",
        "server/provider/introspection: only resource-server sees the organization and its plan",
      ],
    },
  ],
};
