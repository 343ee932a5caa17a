import type { Standard } from "./clause.ts";

export const standard: Standard = {
  rfc: 9700,
  name: "OAuth 2.0 Security Best Current Practice",
  clauses: [
    {
      section: "2.1",
      rule: "Redirect URIs are compared character by character, but for the port of loopback URIs.",
      tests: [
        "server/provider/redirect-uri-matching: the unregistered ${JSON.stringify(uri)} is rejected without a redirect",
        "server/provider/redirect-uri-matching: the loopback URI ${uri}, which differs in more than its port, is rejected",
        "server/provider/redirect-uri-matching: an https redirect URI matches only as it is registered, also without a path",
      ],
    },
    {
      section: "2.1",
      rule: "No URL forwards a browser to any address that its query names.",
      tests: [
        "server/provider/authorization-endpoint: a request with an invalid client or redirect URI never redirects",
        "server/auth/return-to: after signing in, the ${way} redirects only to pages of this service",
        "server/auth/return-to: if there are several return URLs, none is used",
      ],
    },
    {
      section: "2.1",
      rule: "A redirect after a request with the user's credentials doesn't forward them.",
      tests: [
        "server/interactions/pages: signing in and approving redirect with 303",
        "server/http/security-headers: a sign-in and a consent redirect with a 303",
      ],
    },
    {
      section: "2.1.1",
      rule: "PKCE is supported.",
      tests: [
        "flow: an app authorized by a user can use the API for the chosen organization",
        "server/provider/authorization-code: the verifier of one authorization can't redeem the code of another",
      ],
    },
    {
      section: "2.1.1",
      rule: "After a request with a code challenge, the code is redeemed only with its verifier.",
      tests: [
        "server/provider/authorization-code: ${what} is rejected and leaves the code valid",
        "server/provider/authorization-code: the verifier of one authorization can't redeem the code of another",
      ],
    },
    {
      section: "2.1.1",
      rule: "A verifier is accepted only if the authorization request had a challenge.",
      tests: [
        "server/provider/authorization-code: a request with ${what} is rejected with invalid_request",
        "server/provider/authorization-code: a native app must also send a code challenge",
        "server/provider/registered-clients: the authorization request of a registered client needs PKCE",
      ],
    },
    {
      section: "2.1.1",
      rule: "Clients can find out that PKCE is supported.",
      tests: ["server/provider/discovery: S256 is the only code challenge method"],
    },
    {
      section: "2.2.2",
      rule: "Refresh tokens of public clients are rotated, or bound to a key.",
      tests: [
        "conformance/rfc/9700: the refresh token of a public client is rotated, and its replay ends the grant",
        "server/provider/dpop-refresh-tokens: the refresh token of a public client is bound to the key of its proof",
      ],
    },
    {
      section: "2.3",
      rule: "A resource server rejects tokens for another resource server.",
      tests: [
        "resources/access/protected-resources: ${name} is rejected with invalid_token",
        "resources/access/protected-resources: ${who} with a token for ${name} can use ${accepting}",
        "resources/access/dpop: ${target.name} rejects unknown tokens, and those of another resource, with the DPoP scheme",
      ],
    },
    {
      section: "2.4",
      rule: "There is no password grant.",
      tests: [
        "server/provider/token-endpoint: the grant type ${JSON.stringify(grant_type)} is rejected with unsupported_grant_type",
        "server/provider/discovery: code is the only response type, and the implicit and password grants are not supported",
      ],
    },
    {
      section: "2.6",
      rule: "Authorization responses are not sent over unencrypted connections.",
      why: "the browser sends them. The next requirement is what a server can do about it",
    },
    {
      section: "2.6",
      rule: "Redirect URIs with http are allowed on loopback only.",
      tests: [
        "server/clients/redirect-uris: ${JSON.stringify(uri.slice(0, 60))} is rejected when it is set",
        "server/provider/registration: a registration with ${what} is refused with ${code}",
        "server/clients/client-metadata-documents: a document ${what} is rejected, and not fetched again by the next request",
      ],
    },
    {
      section: "2.6",
      rule: "Both sides of a response by postMessage are verified.",
      tests: [
        "server/provider/authorization-endpoint: the response mode ${mode} is rejected, and the error is in the query",
      ],
    },
    {
      section: "2.6",
      rule: "The authorization endpoint doesn't support CORS.",
      tests: ["server/provider/authorization-endpoint: the authorization endpoint sends no CORS headers"],
    },
    {
      section: "3",
      rule: "All kinds of attackers that a deployment has to expect are taken into account.",
      why: "a task for people who deploy and review the server",
    },
    {
      section: "4.1.3",
      rule: "The redirect URI of a request equals a registered one.",
      tests: [
        "server/provider/redirect-uri-matching: the unregistered ${JSON.stringify(uri)} is rejected without a redirect",
        "server/provider/pushed-authorization-requests: a pushed request with ${what} is rejected immediately",
      ],
    },
    {
      section: "4.1.3",
      rule: "The port of a native app's redirect URI on localhost may vary.",
      tests: [
        "server/provider/redirect-uri-matching: any port matches for each name of the loopback interface",
        "server/provider/registered-clients: a loopback redirect URI matches with any port, and nothing else does",
      ],
    },
    {
      section: "4.2.4",
      rule: "A code is invalid after its first use.",
      tests: [
        "server/provider/authorization-code: a duplicate redemption within 10 seconds is rejected and revokes nothing",
        "server/provider/authorization-code: a replay after the retry window revokes every token issued from the code",
        "server/provider/authorization-code: concurrent redemptions of one code succeed exactly once, with tokens that stay valid",
      ],
    },
    {
      section: "4.7.1",
      rule: "Clients that rely on PKCE against CSRF can find out that it is supported.",
      tests: ["server/provider/discovery: S256 is the only code challenge method"],
    },
    {
      section: "4.8.2",
      rule: "Removing the challenge from an authorization request doesn't turn PKCE off.",
      tests: [
        "server/provider/authorization-code: a request with ${what} is rejected with invalid_request",
        "server/provider/pushed-authorization-requests: a pushed request with ${what} is rejected immediately",
      ],
    },
    {
      section: "4.8.2",
      rule: "The server checks whether a request has a challenge, and binds it to the code.",
      tests: [
        "server/provider/authorization-code: the verifier of one authorization can't redeem the code of another",
        "server/provider/authorization-code: ${what} is rejected and leaves the code valid",
      ],
    },
    {
      section: "4.8.2",
      rule: "A token request with a verifier is rejected if there was no challenge.",
      tests: [
        "server/provider/authorization-code: a request with ${what} is rejected with invalid_request",
        "server/provider/registered-clients: the authorization request of a registered client needs PKCE",
      ],
    },
    {
      section: "4.9.3",
      rule: "A resource server treats access tokens as secrets, and doesn't store or pass them on in plain text.",
      tests: [
        "server/provider/hashed-at-rest: no issued token, code, secret, password or cookie is stored in plain text",
        "resources/access/token-logging: no token or webhook secret is logged, regardless of how the request ends",
      ],
    },
    {
      section: "4.11.2",
      rule: "A request whose redirect URI doesn't belong to the client is not redirected.",
      tests: [
        "server/provider/authorization-endpoint: a request with an invalid client or redirect URI never redirects",
        "server/provider/redirect-uri-matching: a request with ${what} gets an error page and no redirect",
        "server/provider/untrusted-redirects: no app with a metadata document is redirected to another website by ${what}",
      ],
    },
    {
      section: "4.11.2",
      rule: "Clients that registered themselves can't use invalid or silent requests for phishing.",
      tests: [
        "server/provider/untrusted-redirects: an app that registered itself isn't redirected to even if the user is signed in",
        "server/provider/untrusted-redirects: silent authentication by an app that identified itself doesn't redirect without a sign-in",
        "server/provider/registered-clients: a request with ${what} is redirected to a known website, and not to any other",
      ],
    },
    {
      section: "4.11.2",
      rule: "The user is authenticated before a redirect, except for silent authentication.",
      tests: [
        "server/provider/untrusted-redirects: an invalid request with ${what} asks for a sign-in, then redirects with the error",
        "server/provider/untrusted-redirects: a sign-in comes before the redirect to an app with a metadata document and ${what}",
        "server/provider/untrusted-redirects: an invalid request with prompt=none gets a page without a sign-in",
      ],
    },
    {
      section: "4.11.2",
      rule: "The user is also authenticated before an error is sent to loopback or to a known AI client.",
      deviation:
        "without a sign-in, errors are redirected to the user's own computer and to known clients only",
    },
    {
      section: "4.12",
      rule: "No redirect after a request with credentials has the status 307.",
      tests: [
        "server/interactions/pages: signing in and approving redirect with 303",
        "server/http/security-headers: a sign-in and a consent redirect with a 303",
      ],
    },
    {
      section: "4.13",
      rule: "A reverse proxy removes what clients could forge from requests.",
      why: "applies to the proxy",
    },
    {
      section: "4.13",
      rule: "The connection between the proxy and the server is protected.",
      why: "applies to the deployment",
    },
    {
      section: "4.14.2",
      rule: "The server decides which clients get refresh tokens.",
      tests: [
        "server/provider/client-credentials: the response has neither a refresh token nor an id_token",
        "server/provider/workload-identity: openid-client sends the token of a job as a grant",
        "server/provider/identity-assertions: the response has no refresh token, and the token is for the resource of the assertion only",
      ],
    },
    {
      section: "4.14.2",
      rule: "A refresh token is bound to the scopes and resources that the user allowed.",
      tests: [
        "server/provider/refresh-tokens: a refresh of ${SCOPE} for ${scope} is rejected",
        "server/provider/refresh-tokens: a refresh can't extend links:read to links:write",
        "server/provider/resource-indicators: a grant for one resource issues tokens only for that resource",
      ],
    },
    {
      section: "4.14.2",
      rule: "The replay of a public client's refresh token is detected, by rotation or by a key.",
      tests: [
        "server/provider/refresh-retries: of a ${what} client, a use ${seconds + 1} s after the first one revokes the family",
        "conformance/rfc/9700: the refresh token of a public client is rotated, and its replay ends the grant",
        "server/provider/dpop-refresh-tokens: the refresh token of a public client is bound to the key of its proof",
      ],
    },
    {
      section: "4.14.2",
      rule: "With rotation, the previous refresh token is invalidated.",
      deviation:
        "the previous token may be retried ten times, for 120 seconds by public clients and for 10 seconds by confidential ones, because responses get lost and hosts send a token several times; a later use revokes the grant",
    },
    {
      section: "4.14.2",
      rule: "The integrity of a refresh token that contains its grant is protected.",
      tests: ["server/provider/refresh-tokens: a modified refresh token is rejected"],
    },
    {
      section: "4.15.1",
      rule: "A client can't choose an ID that a resource server mistakes for the subject of a user.",
      tests: [
        "server/provider/client-credentials: the subject of a client credentials token is the client, never a user",
        "server/clients/client-metadata-documents: a client with a document gets no token for itself",
        "server/provider/registered-clients: a token request of a registered client with ${what} is refused with ${error}",
      ],
    },
    {
      section: "4.16",
      rule: "Clickjacking is prevented.",
      tests: [
        "server/interactions/pages: no page can be framed",
        "server/http/security-headers: the page “${name}” can't be framed, sends no referrer and loads nothing from other origins",
      ],
    },
    {
      section: "4.17.2",
      rule: "Responses by postMessage go only to the exact origin of the client, and are protected like redirects.",
      tests: [
        "server/provider/authorization-endpoint: the response mode ${mode} is rejected, and the error is in the query",
      ],
    },
  ],
};
