import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 6749,
  name: "OAuth 2.0",
  clauses: [
    {
      section: "2.2",
      rule: "A client ID without a credential doesn't authenticate a client.",
      tests: [
        "server/provider/client-authentication: a request with ${what} is rejected at ${endpoint}",
        "server/provider/client-authentication: a code or refresh token is not redeemed without the client secret",
      ],
    },
    {
      section: "2.3",
      rule: "Which client sends a request isn't inferred from the authentication of a public client.",
      tests: [
        "server/provider/registration: a client that registers with ${what} becomes a public one",
        "server/provider/registered-clients: a token request of a registered client with ${what} is refused with ${error}",
      ],
    },
    {
      section: "2.3",
      rule: "A request uses at most one authentication method.",
      tests: [
        "server/provider/client-authentication: using two authentication methods is rejected with invalid_request at ${endpoint}",
        "server/provider/private-key-jwt: an assertion beside a secret is refused, in the body and in the header",
      ],
    },
    {
      section: "2.3.1",
      rule: "A client that has a secret can send it with HTTP Basic.",
      tests: [
        "server/provider/client-authentication: the secret is accepted in the header, raw or form-encoded, and in the body",
      ],
    },
    {
      section: "2.3.1",
      rule: "Credentials in the body are a client ID and a secret, both required.",
      tests: ["server/provider/client-authentication: a request with ${what} is rejected at ${endpoint}"],
    },
    {
      section: "2.3.1",
      rule: "Credentials in parameters count in the body only, never in the URL.",
      tests: ["server/provider/client-authentication: a secret in the query is ignored at ${endpoint}"],
    },
    {
      section: "2.3.1",
      rule: "Secrets are sent over TLS: the address of each endpoint is https.",
      tests: [
        "server/http/https: every URL in the metadata is https at the configured host, although the proxy speaks http",
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
      ],
    },
    {
      section: "2.3.1",
      rule: "Each endpoint that accepts a secret is protected against guessing.",
      tests: [
        "server/rate-limits/client-authentication: guesses of a secret at ${endpoint} get 429, while the client is served on other networks",
        "server/rate-limits/client-authentication: guessing the secrets of many clients is limited per network",
      ],
    },
    {
      section: "2.3.2",
      rule: "With another method, it is defined which client an authentication stands for.",
      tests: [
        "server/provider/private-key-jwt: client_id may be sent beside the assertion, and must be the same client",
        "server/provider/private-key-jwt: an assertion is refused: ${name}",
      ],
    },
    {
      section: "3.1",
      rule: "The identity of the user is verified before anything is granted.",
      tests: [
        "server/interactions/consent: consent can't be submitted before signing in",
        "server/provider/prompt: prompt=none without a session gets login_required",
      ],
    },
    {
      section: "3.1",
      rule: "The address of the authorization endpoint has no fragment.",
      tests: ["conformance/rfc/6749: the address of no endpoint has a query or a fragment"],
    },
    {
      section: "3.1",
      rule: "A query in the address of the endpoint is kept when parameters are added.",
      why: "the address has no query",
    },
    {
      section: "3.1",
      rule: "Authorization requests use TLS: the address of the endpoint is https.",
      tests: [
        "server/http/https: every URL in the metadata is https at the configured host, although the proxy speaks http",
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
      ],
    },
    {
      section: "3.1",
      rule: "The authorization endpoint supports GET.",
      tests: [
        "flow: an app authorized by a user can use the API for the chosen organization",
        "server/provider/authorization-endpoint: the response mode query is accepted",
      ],
    },
    {
      section: "3.1",
      rule: "A parameter without a value counts as missing.",
      tests: [
        "conformance/rfc/6749: an authorization request with empty optional parameters is like one without them",
        "conformance/rfc/6749: an authorization request with an empty response_type or code_challenge is like one without it",
      ],
    },
    {
      section: "3.1",
      rule: "Unknown parameters of an authorization request are ignored.",
      tests: ["server/provider/authorization-endpoint: unknown and empty parameters are ignored"],
    },
    {
      section: "3.1",
      rule: "No parameter of an authorization request is repeated.",
      tests: ["server/provider/authorization-endpoint: a repeated ${name} is rejected with invalid_request"],
    },
    {
      section: "3.1",
      rule: "No parameter of an authorization response is repeated.",
      tests: [
        "conformance/rfc/6749: no parameter of a response is repeated, even if the redirect URI contains it",
      ],
    },
    {
      section: "3.1.1",
      rule: "response_type is required, and its value is one of those defined: here, code.",
      tests: [
        "server/provider/authorization-endpoint: a request with ${what} redirects with ${error}, state and iss",
      ],
    },
    {
      section: "3.1.1",
      rule: "A missing or unknown response_type leads to an error response.",
      tests: [
        "server/provider/authorization-endpoint: a missing response_type is named in the error, which reaches the app",
        "server/provider/authorization-endpoint: a request with ${what} redirects with ${error}, state and iss",
      ],
    },
    {
      section: "3.1.2",
      rule: "A redirect URI is absolute, and has no fragment.",
      tests: [
        "server/clients/redirect-uris: ${JSON.stringify(uri.slice(0, 60))} is rejected when it is set",
        "server/dashboard/api-access/client: every invalid redirect URI is listed, and the saved list doesn't change",
        "server/provider/registration: a registration with ${what} is refused with ${code}",
      ],
    },
    {
      section: "3.1.2",
      rule: "The query of a redirect URI is kept when parameters are added.",
      tests: ["server/provider/authorization-endpoint: the query of a redirect URI is preserved"],
    },
    {
      section: "3.1.2.2",
      rule: "Public clients register their redirect URIs.",
      tests: [
        "server/provider/registration: a registration with ${what} is refused with ${code}",
        "server/clients/client-metadata-documents: a document ${what} is rejected, and not fetched again by the next request",
      ],
    },
    {
      section: "3.1.2.2",
      rule: "Confidential clients that use the implicit grant register their redirect URIs.",
      why: "the implicit grant is not supported",
    },
    {
      section: "3.1.2.3",
      rule: "A client with several redirect URIs, or with none, names one in the request.",
      tests: [
        "server/provider/redirect-uri-matching: a request with ${what} gets an error page and no redirect",
        "server/provider/redirect-uri-matching: a client without redirect URIs can't use the authorization endpoint",
      ],
    },
    {
      section: "3.1.2.3",
      rule: "The redirect URI of a request is compared with those that are registered, and equals one of them.",
      tests: [
        "server/provider/redirect-uri-matching: the unregistered ${JSON.stringify(uri)} is rejected without a redirect",
      ],
    },
    {
      section: "3.1.2.3",
      rule: "A redirect URI that is registered in full is compared as a string.",
      tests: [
        "server/provider/redirect-uri-matching: the unregistered ${JSON.stringify(uri)} is rejected without a redirect",
        "server/provider/redirect-uri-matching: an https redirect URI matches only as it is registered, also without a path",
        "server/provider/redirect-uri-matching: the loopback URI ${uri}, which differs in more than its port, is rejected",
      ],
    },
    {
      section: "3.1.2.4",
      rule: "The browser is never redirected to an invalid redirect URI.",
      tests: [
        "server/provider/authorization-endpoint: a request with an invalid client or redirect URI never redirects",
        "server/provider/redirect-uri-matching: a request with ${what} gets an error page and no redirect",
      ],
    },
    {
      section: "3.2",
      rule: "The address of the token endpoint has no fragment.",
      tests: ["conformance/rfc/6749: the address of no endpoint has a query or a fragment"],
    },
    {
      section: "3.2",
      rule: "A query in the address of the token endpoint is kept when parameters are added.",
      why: "the address has no query",
    },
    {
      section: "3.2",
      rule: "Token requests use TLS: the address of the endpoint is https.",
      tests: [
        "server/http/https: every URL in the metadata is https at the configured host, although the proxy speaks http",
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
      ],
    },
    {
      section: "3.2",
      rule: "Token requests are sent with POST.",
      tests: [
        "server/provider/token-endpoint: ${method} is rejected at ${endpoint}",
        "server/provider/token-endpoint: parameters in the query are ignored",
      ],
    },
    {
      section: "3.2",
      rule: "A parameter without a value counts as missing, and unknown parameters are ignored.",
      tests: [
        "conformance/rfc/6749: the token endpoint ignores unknown and empty parameters",
        "server/provider/token-endpoint: a token request with ${what} gets ${status} ${error}",
      ],
    },
    {
      section: "3.2",
      rule: "No parameter of a token request is repeated.",
      tests: [
        "server/provider/token-endpoint: a repeated parameter is rejected at each endpoint",
        "server/provider/token-endpoint: a token request with ${what} gets ${status} ${error}",
      ],
    },
    {
      section: "3.2.1",
      rule: "Clients with credentials authenticate at the token endpoint.",
      tests: [
        "server/provider/client-authentication: a request with ${what} is rejected at ${endpoint}",
        "server/provider/client-authentication: a code or refresh token is not redeemed without the client secret",
      ],
    },
    {
      section: "3.2.1",
      rule: "A client without authentication sends its client ID when it redeems a code.",
      tests: [
        "server/provider/registered-clients: the code of a registered client is redeemed with its own client ID only",
      ],
    },
    {
      section: "3.3",
      rule: "The response names the scope if it isn't the one that was requested.",
      tests: [
        "server/provider/scopes: a request with ${what}",
        "server/provider/client-credentials: a request with ${what}",
        "server/provider/refresh-tokens: a refresh may narrow ${SCOPE} to ${requested} without changing the grant",
      ],
    },
    {
      section: "3.3",
      rule: "Without a scope, a request gets the default scope, or fails.",
      tests: [
        "server/provider/scopes: a request with ${what}",
        "server/provider/client-credentials: a request with ${what}",
      ],
    },
    {
      section: "4.1.1",
      rule: "An authorization request has response_type and client_id.",
      tests: [
        "server/provider/authorization-endpoint: a missing response_type is named in the error, which reaches the app",
        "server/provider/redirect-uri-matching: a request with ${what} gets an error page and no redirect",
      ],
    },
    {
      section: "4.1.2",
      rule: "The authorization response has a code.",
      tests: [
        "server/provider/authorization-endpoint: a response to a request without a state contains none",
        "flow: an app authorized by a user can use the API for the chosen organization",
      ],
    },
    {
      section: "4.1.2",
      rule: "A code expires soon after it is issued.",
      tests: ["server/provider/authorization-code: a code expires after 60 seconds"],
    },
    {
      section: "4.1.2",
      rule: "The second use of a code is refused.",
      tests: [
        "server/provider/authorization-code: a duplicate redemption within 10 seconds is rejected and revokes nothing",
        "server/provider/authorization-code: a replay after the retry window revokes every token issued from the code",
        "server/provider/authorization-code: concurrent redemptions of one code succeed exactly once, with tokens that stay valid",
      ],
    },
    {
      section: "4.1.2",
      rule: "The response has the state of the request, unchanged.",
      tests: [
        "server/provider/authorization-endpoint: a state with ${what} is returned unchanged, with a code and with an error",
      ],
    },
    {
      section: "4.1.2.1",
      rule: "An invalid client or redirect URI leads to no redirect.",
      tests: [
        "server/provider/authorization-endpoint: a request with an invalid client or redirect URI never redirects",
        "server/provider/redirect-uri-matching: a request with ${what} gets an error page and no redirect",
      ],
    },
    {
      section: "4.1.2.1",
      rule: "The error response has an error code.",
      tests: [
        "server/provider/authorization-endpoint: a request with ${what} redirects with ${error}, state and iss",
        "server/interactions/consent: any decision other than allow denies access",
      ],
    },
    {
      section: "4.1.2.1",
      rule: "The error and its description have printable ASCII characters, without quotation marks and backslashes.",
      tests: [
        "conformance/rfc/6749: the error for the authorization request ${JSON.stringify(fields)} has allowed characters only",
      ],
    },
    {
      section: "4.1.2.1",
      rule: "error_uri is a URI reference.",
      why: "no authorization response has an error_uri",
    },
    {
      section: "4.1.2.1",
      rule: "The error response has the state of the request, unchanged.",
      tests: [
        "server/provider/authorization-endpoint: a state with ${what} is returned unchanged, with a code and with an error",
      ],
    },
    {
      section: "4.1.3",
      rule: "A code is redeemed with the grant type authorization_code and the code.",
      tests: [
        "server/provider/authorization-code: ${what} is rejected and leaves the real code valid",
        "server/provider/token-endpoint: a token request with ${what} gets ${status} ${error}",
      ],
    },
    {
      section: "4.1.3",
      rule: "Clients that have credentials authenticate to redeem a code.",
      tests: [
        "server/provider/client-authentication: a code or refresh token is not redeemed without the client secret",
      ],
    },
    {
      section: "4.1.3",
      rule: "If a request contains client authentication, it is verified.",
      tests: [
        "server/provider/client-authentication: a request with ${what} is rejected at ${endpoint}",
        "server/provider/authorization-code: a replay with a wrong client secret revokes nothing",
      ],
    },
    {
      section: "4.1.3",
      rule: "A code is redeemed only for the confidential client that it was issued to.",
      tests: [
        "server/provider/authorization-code: another client can neither redeem a code nor revoke its tokens",
      ],
    },
    {
      section: "4.1.3",
      rule: "A code of a public client is redeemed only with that client's ID.",
      tests: [
        "server/provider/registered-clients: the code of a registered client is redeemed with its own client ID only",
      ],
    },
    {
      section: "4.1.3",
      rule: "The code is verified.",
      tests: ["server/provider/authorization-code: ${what} is rejected and leaves the real code valid"],
    },
    {
      section: "4.1.3",
      rule: "A redirect URI that was in the authorization request is also in the token request.",
      tests: [
        "server/provider/authorization-code: a client with several redirect URIs must repeat it in the token request",
      ],
    },
    {
      section: "4.1.3",
      rule: "The redirect URIs of both requests are identical.",
      tests: [
        "server/provider/authorization-code: a redemption whose redirect_uri has ${what} is rejected and leaves the code valid",
        "server/provider/authorization-code: a loopback port in the token request must match the authorization request",
      ],
    },
    {
      section: "4.2",
      rule: "Requests and responses of the implicit grant have the required parameters, and no refresh token.",
      why: "the implicit grant is not supported",
    },
    {
      section: "4.3",
      rule: "The password grant authenticates clients, verifies passwords, and is protected against guessing.",
      why: "the password grant is not supported",
    },
    {
      section: "4.4",
      rule: "Only confidential clients can use client credentials.",
      tests: [
        "server/provider/token-endpoint: the dashboard's public client can't use ${grant_type}",
        "server/provider/registered-clients: a token request of a registered client with ${what} is refused with ${error}",
        "server/clients/client-metadata-documents: a client with a document gets no token for itself",
      ],
    },
    {
      section: "4.4.2",
      rule: "The grant type is client_credentials, and the client is authenticated.",
      tests: [
        "server/provider/client-authentication: a request with ${what} is rejected at ${endpoint}",
        "server/provider/token-endpoint: the grant type ${JSON.stringify(grant_type)} is rejected with unsupported_grant_type",
      ],
    },
    {
      section: "5.1",
      rule: "A token response has the access token and its type.",
      tests: [
        "server/provider/client-credentials: the response has neither a refresh token nor an id_token",
        "server/provider/refresh-tokens: a refresh token can be used repeatedly, each time for a new access token",
      ],
    },
    {
      section: "5.1",
      rule: "A token response has the scope if it isn't the one that was requested.",
      tests: [
        "server/provider/scopes: a request with ${what}",
        "server/provider/client-credentials: a request with ${what}",
      ],
    },
    {
      section: "5.1",
      rule: "A response with tokens has Cache-Control: no-store and Pragma: no-cache.",
      tests: ["server/provider/token-endpoint: every response of the endpoints has cache-control no-store"],
    },
    {
      section: "5.2",
      rule: "An error response has an error code.",
      tests: [
        "server/provider/token-endpoint: a token request with ${what} gets ${status} ${error}",
        "server/provider/json-errors: ${what} gets ${status} in JSON for every Accept header",
      ],
    },
    {
      section: "5.2",
      rule: "Failed authentication in the Authorization header gets 401 with a challenge for its scheme.",
      tests: [
        "server/provider/client-authentication: a wrong secret in the header gets a Basic challenge at ${endpoint}",
      ],
    },
    {
      section: "5.2",
      rule: "The error and its description have printable ASCII characters, without quotation marks and backslashes.",
      tests: [
        "conformance/rfc/6749: the error for the token request ${JSON.stringify(fields)} has allowed characters only",
      ],
    },
    {
      section: "5.2",
      rule: "error_uri is a URI reference.",
      tests: [
        "conformance/rfc/6749: the error for the token request ${JSON.stringify(fields)} has allowed characters only",
      ],
    },
    {
      section: "6",
      rule: "A refresh has the grant type refresh_token and the refresh token.",
      tests: ["server/provider/token-endpoint: a token request with ${what} gets ${status} ${error}"],
    },
    {
      section: "6",
      rule: "A refresh can't extend the scope that the user granted.",
      tests: [
        "server/provider/refresh-tokens: a refresh of ${SCOPE} for ${scope} is rejected",
        "server/provider/refresh-tokens: a refresh can't extend links:read to links:write",
      ],
    },
    {
      section: "6",
      rule: "Clients that have credentials authenticate to refresh, and authentication that is sent is verified.",
      tests: [
        "server/provider/client-authentication: a code or refresh token is not redeemed without the client secret",
        "server/provider/refresh-tokens: a refresh with a wrong secret is rejected and revokes nothing",
      ],
    },
    {
      section: "6",
      rule: "A refresh token is accepted only from the client that it was issued to.",
      tests: [
        "server/provider/refresh-tokens: another client can't use a refresh token, and the attempt revokes nothing",
      ],
    },
    {
      section: "6",
      rule: "The refresh token is verified.",
      tests: [
        "server/provider/refresh-tokens: a modified refresh token is rejected",
        "server/provider/refresh-tokens: a refresh token expires after 30 days without use",
        "server/provider/revocation: every kind of token is revoked with the hint ${JSON.stringify(hint)}",
      ],
    },
    {
      section: "6",
      rule: "A new refresh token has the scope of the one that it replaces.",
      tests: [
        "server/provider/refresh-token-rotation: rotation keeps the granted scope when a narrower access token is requested",
      ],
    },
    {
      section: "7",
      rule: "The resource server verifies the access token.",
      tests: [
        "resources/access/bearer: ${name} is rejected with invalid_token",
        "resources/access/bearer: a revoked token is rejected on the next request, and other tokens still work",
      ],
    },
    {
      section: "7",
      rule: "The resource server accepts no expired access token.",
      tests: ["resources/access/ended-access: an access token expires after an hour"],
    },
    {
      section: "7",
      rule: "The scope of the access token covers the request.",
      tests: [
        'resources/access/scopes: ${id} requires ${required.join(" and ")} and no other scope',
        'resources/access/scopes: ${name} requires ${required.join(" and ")}: otherwise it is a 403 that names it and the scopes of the token',
      ],
    },
    {
      section: "8",
      rule: "Token types, parameters, grants, response types and errors of one's own are registered and well-formed.",
      why: "applies to specifications of extensions, and linkgate defines none",
    },
    {
      section: "10.1",
      rule: "Native apps and apps in a browser get no secret to authenticate with.",
      tests: [
        "server/provider/registration: the response is uncached JSON that names what applies to the client",
        "server/provider/registration: a client that registers with ${what} becomes a public one",
      ],
    },
    {
      section: "10.2",
      rule: "Every client that can authenticate has to.",
      tests: [
        "server/provider/client-authentication: the authentication method none of ${who} is refused with the methods that it must use",
        "server/clients/client-metadata-documents: clients of organizations still need their secret",
        "server/provider/document-assertions: an assertion of another key, for another server, or none at all is rejected",
      ],
    },
    {
      section: "10.2",
      rule: "Clients that can't authenticate register the redirect URIs that receive their responses.",
      tests: [
        "server/provider/registration: a registration with ${what} is refused with ${code}",
        "server/provider/registered-clients: a loopback redirect URI matches with any port, and nothing else does",
      ],
    },
    {
      section: "10.3",
      rule: "Access tokens are confidential in storage and in transit.",
      tests: [
        "server/provider/hashed-at-rest: no issued token, code, secret, password or cookie is stored in plain text",
        "resources/access/token-logging: no token or webhook secret is logged, regardless of how the request ends",
        "server/http/https: every URL in the metadata is https at the configured host, although the proxy speaks http",
      ],
    },
    {
      section: "10.3",
      rule: "Access tokens are known only to the servers, to the resource server they are for, and to their client.",
      tests: [
        "server/provider/introspection: another client's tokens are inactive with the hint ${hint}",
        "resources/access/protected-resources: ${who} with a token for ${name} can use ${accepting}",
      ],
    },
    {
      section: "10.3",
      rule: "Unauthorized parties cannot produce valid access tokens.",
      tests: [
        "server/provider/token-endpoint: a modified token is rejected",
        "server/provider/token-endpoint: tokens are random from the end of their time on",
        "resources/access/bearer: ${name} is rejected with invalid_token",
      ],
    },
    {
      section: "10.4",
      rule: "Refresh tokens are confidential in storage and in transit, and known only to the server and the client.",
      tests: [
        "server/provider/hashed-at-rest: no issued token, code, secret, password or cookie is stored in plain text",
        "server/provider/introspection: resource-server sees no refresh tokens",
        "server/http/https: every URL in the metadata is https at the configured host, although the proxy speaks http",
      ],
    },
    {
      section: "10.4",
      rule: "A refresh token stays bound to its client, and each use verifies this.",
      tests: [
        "server/provider/refresh-tokens: another client can't use a refresh token, and the attempt revokes nothing",
        "server/provider/registered-clients: a registered client can neither redeem, refresh, introspect nor revoke what another one was issued",
      ],
    },
    {
      section: "10.4",
      rule: "Unauthorized parties cannot produce valid refresh tokens.",
      tests: [
        "server/provider/refresh-tokens: a modified refresh token is rejected",
        "server/provider/token-endpoint: tokens, codes, ids and secrets are long and use only URL-safe characters",
      ],
    },
    {
      section: "10.5",
      rule: "Codes are short-lived, and can be used once.",
      tests: [
        "server/provider/authorization-code: a code expires after 60 seconds",
        "server/provider/authorization-code: concurrent redemptions of one code succeed exactly once, with tokens that stay valid",
      ],
    },
    {
      section: "10.5",
      rule: "A client that can authenticate does so, and gets tokens only for its own codes.",
      tests: [
        "server/provider/authorization-code: another client can neither redeem a code nor revoke its tokens",
        "server/provider/client-authentication: a code or refresh token is not redeemed without the client secret",
      ],
    },
    {
      section: "10.6",
      rule: "The redirect URI that received the code equals the one in the token request.",
      tests: [
        "server/provider/authorization-code: a redemption whose redirect_uri has ${what} is rejected and leaves the code valid",
      ],
    },
    {
      section: "10.6",
      rule: "Public clients register their redirect URIs, and the one in a request is checked against them.",
      tests: [
        "server/provider/registration: a registration with ${what} is refused with ${code}",
        "server/provider/registered-clients: a loopback redirect URI matches with any port, and nothing else does",
        "server/provider/redirect-uri-matching: the unregistered ${JSON.stringify(uri)} is rejected without a redirect",
      ],
    },
    {
      section: "10.8",
      rule: "Tokens, passwords and credentials of clients are never sent in the clear.",
      tests: [
        "server/http/https: every URL in the metadata is https at the configured host, although the proxy speaks http",
        "server/http/https: every response over https carries HSTS, also errors",
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
      ],
    },
    {
      section: "10.9",
      rule: "The server proves its identity by TLS at the authorization and token endpoints.",
      why: "TLS ends in a proxy in front of the server, which has the certificate",
    },
    {
      section: "10.10",
      rule: "Tokens, codes, passwords and secrets can't be found by guessing.",
      tests: [
        "server/rate-limits/client-authentication: guesses of a secret at ${endpoint} get 429, while the client is served on other networks",
        "server/rate-limits/client-authentication: guesses of a code verifier get 429 and leave the code valid on other networks",
        "server/auth/login-limits: thirty concurrent guesses get no further than sequential ones",
      ],
    },
    {
      section: "10.10",
      rule: "The probability of guessing a token, code or secret is at most 2^-128.",
      tests: [
        "server/provider/token-endpoint: tokens, codes, ids and secrets are long and use only URL-safe characters",
        "server/provider/token-endpoint: tokens are random from the end of their time on",
      ],
    },
    {
      section: "10.10",
      rule: "Credentials of users are protected by other means.",
      tests: [
        "server/auth/login-limits: after five wrong passwords the page says when to retry, and another IP address can still sign in",
        "server/auth/login-limits: an IP address that tries many usernames is limited, together with its network",
      ],
    },
    {
      section: "10.11",
      rule: "Every page for users is on an https address.",
      tests: [
        "server/http/https: behind a TLS proxy, every cookie of a sign-in is Secure, HttpOnly and host-only",
        "server/settings/config: an invalid ${name} is rejected in a sentence with its name",
      ],
    },
    {
      section: "10.12",
      rule: "The authorization endpoint is protected against cross-site request forgery.",
      tests: [
        "server/interactions/consent: a consent with ${what} is rejected and changes nothing",
        "server/interactions/consent: a consent with ${JSON.stringify(headers)} is rejected even with the CSRF token",
        "server/interactions/consent: another browser can neither open nor approve an authorization",
      ],
    },
    {
      section: "10.12",
      rule: "No client is authorized without the user's knowledge and explicit consent.",
      tests: [
        "server/interactions/consent: any decision other than allow denies access",
        "server/interactions/remembered-consent: another user and another client are asked",
        "server/provider/registered-clients: a registered client is asked for consent each time, also with an https redirect URI",
      ],
    },
    {
      section: "10.14",
      rule: "Received values are sanitized, above all state and redirect_uri.",
      tests: [
        "server/provider/authorization-endpoint: a state with ${what} is returned unchanged, with a code and with an error",
        "server/provider/authorization-endpoint: the error page escapes what it repeats",
        "server/provider/redirect-uri-matching: the unregistered ${JSON.stringify(uri)} is rejected without a redirect",
      ],
    },
    {
      section: "10.16",
      rule: "The implicit grant is not used to authenticate users without a further check.",
      why: "the implicit grant is not supported",
    },
    {
      section: "B",
      rule: "Names and values in forms and queries are encoded in UTF-8.",
      tests: [
        "server/provider/authorization-endpoint: a state with ${what} is returned unchanged, with a code and with an error",
        "server/provider/token-endpoint: a charset other than UTF-8 is rejected",
      ],
    },
  ],
};
