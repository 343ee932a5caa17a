import type { ProblemCodeDescription } from "../../resources/http/problem-codes.ts";

/** The error codes of OAuth and OpenID Connect. In an authorization response, they have no status. */
export const OAUTH_ERRORS: Record<string, ProblemCodeDescription> = {
  invalid_request: {
    status: 400,
    meaning: "A parameter is missing, repeated or invalid; `error_description` names it (RFC 6749 §5.2).",
    next: "Fix what `error_description` names.",
  },
  invalid_client: {
    status: 401,
    meaning:
      "The client is unknown or disabled, or its secret or assertion is wrong or has expired (RFC 6749 §5.2). Self-registered clients expire after 90 days.",
    next: "Check the client ID and its secret or key. A self-registered client has to register again.",
  },
  invalid_grant: {
    status: 400,
    meaning:
      "The code, refresh token or assertion is unknown, already used, expired or revoked, or belongs to another client, redirect URI or key (RFC 6749 §5.2).",
    next: "Ask the user to authorize the app again. For an assertion, request a new one.",
  },
  unauthorized_client: {
    status: 400,
    meaning:
      "The client may not use this grant type, or its organization isn't on a paid plan or is suspended (RFC 6749 §5.2).",
    next: "Use a grant type that the client has, or ask an owner of its organization to check the plan.",
  },
  unsupported_grant_type: {
    status: 400,
    meaning: "The server doesn't have this `grant_type` (RFC 6749 §5.2).",
    next: "Use one of `grant_types_supported` in the server's metadata.",
  },
  invalid_scope: {
    status: 400,
    meaning:
      "A scope doesn't exist, or the grant, the client or the user's role doesn't include it (RFC 6749 §5.2).",
    next: "Request only scopes of `scopes_supported` that the grant includes.",
  },
  invalid_target: {
    status: 400,
    meaning:
      "`resource` isn't one of this server's resources, or the grant is for another one (RFC 8707 §2).",
    next: "Use the URL of the server, of its API or of its MCP endpoint, or omit `resource`.",
  },
  invalid_dpop_proof: {
    status: 400,
    meaning: "The DPoP proof is invalid, or was already used (RFC 9449 §5).",
    next: "Sign a new proof for this request.",
  },
  use_dpop_nonce: {
    status: 400,
    meaning: "The DPoP proof needs a nonce of the server, which `DPoP-Nonce` has (RFC 9449 §8).",
    next: "Retry with a new proof that contains the nonce from `DPoP-Nonce`.",
  },
  unsupported_token_type: {
    status: 400,
    meaning:
      "The token is a JWT, which this server never issues as an access or refresh token (RFC 7009 §2.2.1).",
    next: "Send an access or refresh token of this server.",
  },
  invalid_token: {
    status: 401,
    meaning: "The access token is expired, revoked or unknown, or isn't valid here (RFC 6750 §3.1).",
    next: "Get a new access token.",
  },
  insufficient_scope: {
    status: 403,
    meaning:
      "The access token lacks a required scope, such as `openid` at the userinfo endpoint (RFC 6750 §3.1).",
    next: "Get an access token with the scope.",
  },
  invalid_redirect_uri: {
    status: 400,
    meaning: "The redirect URI isn't registered for the client, or can't be registered (RFC 7591 §3.2.2).",
    next: "Register the exact URI, and send the same one with each request.",
  },
  invalid_client_metadata: {
    status: 400,
    meaning: "A value of the client's metadata document or registration isn't supported (RFC 7591 §3.2.2).",
    next: "Change what `error_description` names.",
  },
  unapproved_software_statement: {
    status: 400,
    meaning: "The registration has a `software_statement`, and the server accepts none (RFC 7591 §3.2.2).",
    next: "Register without it.",
  },
  unsupported_response_type: {
    status: 400,
    meaning: "`response_type` isn't `code` (RFC 6749 §4.1.2.1).",
    next: "Use the authorization code flow with PKCE.",
  },
  unsupported_response_mode: {
    status: 400,
    meaning: "The server doesn't have this `response_mode`.",
    next: "Use one of `response_modes_supported` in the server's metadata, or omit it.",
  },
  access_denied: {
    status: 400,
    meaning: "The user denied the request, or may not authorize the app (RFC 6749 §4.1.2.1).",
    next: "Ask the user. An owner or admin of the organization chooses which apps members may authorize.",
  },
  login_required: {
    status: 400,
    meaning: "The request has `prompt=none`, and the user isn't signed in (OpenID Connect Core §3.1.2.6).",
    next: "Repeat the request without `prompt=none`.",
  },
  consent_required: {
    status: 400,
    meaning:
      "The request has `prompt=none`, and the user hasn't allowed the app what it requests (OpenID Connect Core §3.1.2.6).",
    next: "Repeat the request without `prompt=none`.",
  },
  interaction_required: {
    status: 400,
    meaning:
      "The request has `prompt=none`, and the user has to do something first (OpenID Connect Core §3.1.2.6).",
    next: "Repeat the request without `prompt=none`.",
  },
  account_selection_required: {
    status: 400,
    meaning:
      "The request has `prompt=none`, and the user has to choose an account (OpenID Connect Core §3.1.2.6).",
    next: "Repeat the request without `prompt=none`.",
  },
  invalid_request_object: {
    status: 400,
    meaning: "The request object is invalid (RFC 9101 §6.2).",
    next: "Send the parameters themselves, or push them to the pushed authorization request endpoint.",
  },
  invalid_request_uri: {
    status: 400,
    meaning: "The `request_uri` is unknown, expired or was already used (RFC 9126 §2.2).",
    next: "Push the request again, and use the new `request_uri` within its lifetime.",
  },
  request_not_supported: {
    status: 400,
    meaning: "The server doesn't accept request objects (OpenID Connect Core §3.1.2.6).",
    next: "Send the parameters themselves, or push them to the pushed authorization request endpoint.",
  },
  request_uri_not_supported: {
    status: 400,
    meaning: "The server fetches no request objects (OpenID Connect Core §3.1.2.6).",
    next: "Push the request instead, and use the `request_uri` of the response.",
  },
  registration_not_supported: {
    status: 400,
    meaning: "The server doesn't have the `registration` parameter (OpenID Connect Core §3.1.2.6).",
    next: "Use a client ID metadata document, or register the client first.",
  },
  invalid_signature: {
    status: 401,
    meaning: "The report of leaked credentials isn't signed with a key that the server knows.",
    next: "Sign the body with a key of the settings, or ask the operator of the server to add yours.",
  },
  slow_down: {
    status: 429,
    meaning: "The network or the client sent too many requests or wrong credentials.",
    next: "Retry after the number of seconds in `Retry-After`.",
  },
  server_error: {
    status: 500,
    meaning: "Something went wrong on our end (RFC 6749 §4.1.2.1).",
    next: "Try again later. If the error persists, contact the operator.",
  },
  temporarily_unavailable: {
    status: 503,
    meaning: "The service is temporarily unavailable (RFC 6749 §4.1.2.1).",
    next: "Retry after the number of seconds in `Retry-After`.",
  },
};
