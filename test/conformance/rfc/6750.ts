import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 6750,
  name: "Bearer Token Usage",
  clauses: [
    {
      section: "2",
      rule: "A request sends its token in one way only.",
      tests: ["resources/access/bearer: a token in both the header and the query is rejected with 400"],
    },
    {
      section: "2.1",
      rule: "The resource server accepts a token in the Authorization header.",
      tests: ["resources/access/bearer: the scheme ${scheme} is accepted"],
    },
    {
      section: "3",
      rule: "The response to a request without a token has a challenge.",
      tests: [
        "resources/access/bearer: ${name} counts as no token: 401 with a challenge without an error",
        "resources/access/protected-resources: the challenge of ${path} names its resource's metadata",
        "server/provider/openid-connect: a request without a token gets 401 and a challenge without an error",
      ],
    },
    {
      section: "3",
      rule: "The response to a token that gives no access has a challenge.",
      tests: [
        "resources/access/bearer: ${name} is rejected with invalid_token",
        "resources/access/scopes: ${method} ${path} without the required scope gets a challenge that names it and what the token has",
        "server/provider/openid-connect: ${what} gets 401 invalid_token",
      ],
    },
    {
      section: "3",
      rule: "The challenge has the scheme Bearer.",
      tests: [
        "resources/access/bearer: ${name} counts as no token: 401 with a challenge without an error",
        "conformance/rfc/6750: ${path} answers a request ${what} with a challenge of well-formed parameters, none repeated",
      ],
    },
    {
      section: "3",
      rule: "At least one parameter follows the scheme.",
      tests: [
        "conformance/rfc/6750: ${path} answers a request ${what} with a challenge of well-formed parameters, none repeated",
      ],
    },
    {
      section: "3",
      rule: "realm, scope, error, error_description and error_uri each appear at most once.",
      tests: [
        "conformance/rfc/6750: ${path} answers a request ${what} with a challenge of well-formed parameters, none repeated",
      ],
    },
    {
      section: "3",
      rule: "The scope has printable ASCII characters without quotation marks and backslashes, and single spaces.",
      tests: [
        "conformance/rfc/6750: ${path} answers a request ${what} with a challenge of well-formed parameters, none repeated",
      ],
    },
    {
      section: "3",
      rule: "The error and its description have printable ASCII characters, without quotation marks and backslashes.",
      tests: [
        "conformance/rfc/6750: ${path} answers a request ${what} with a challenge of well-formed parameters, none repeated",
      ],
    },
    {
      section: "3",
      rule: "error_uri is a URI reference.",
      why: "no challenge has an error_uri",
    },
    {
      section: "5.2",
      rule: "A token that refers to stored data can't be guessed.",
      tests: [
        "server/provider/token-endpoint: tokens, codes, ids and secrets are long and use only URL-safe characters",
        "server/provider/token-endpoint: tokens are random from the end of their time on",
      ],
    },
    {
      section: "5.2",
      rule: "A token can't be modified.",
      tests: [
        "server/provider/token-endpoint: a modified token is rejected",
        "resources/access/bearer: ${name} is rejected with invalid_token",
      ],
    },
    {
      section: "5.2",
      rule: "The authorization server implements TLS.",
      why: "TLS ends in a proxy in front of the server",
    },
    {
      section: "5.2",
      rule: "TLS protects tokens between the client and the servers.",
      tests: [
        "server/http/https: every URL in the metadata is https at the configured host, although the proxy speaks http",
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
      ],
    },
    {
      section: "5.2",
      rule: "A token whose content the client must not see is encrypted.",
      why: "tokens have no content",
    },
    {
      section: "5.2",
      rule: "Tokens are confidential between a proxy that ends TLS and the server.",
      why: "the network between them is the operator's",
    },
    {
      section: "5.2",
      rule: "Tokens have a limited lifetime.",
      tests: [
        "resources/access/ended-access: an access token expires after an hour",
        "server/provider/refresh-tokens: all tokens of a grant expire after 90 days, regardless of use",
      ],
    },
    {
      section: "5.3",
      rule: "No bearer token is in a cookie that can be sent in the clear.",
      tests: [
        "server/auth/token-separation: the API and MCP reject a session, as a cookie and as a bearer token",
        "server/http/https: behind a TLS proxy, every cookie of a sign-in is Secure, HttpOnly and host-only",
      ],
    },
    {
      section: "5.3",
      rule: "If a bearer token is in a cookie, requests are protected against forgery from other sites.",
      why: "no bearer token is in a cookie",
    },
  ],
};
