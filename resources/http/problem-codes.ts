export type ProblemCodeDescription = { status: number; meaning: string; next: string };
type ByStatus = Record<number, Record<string, readonly [meaning: string, next: string]>>;
type CodeOf<Codes> = { [Status in keyof Codes]: keyof Codes[Status] & string }[keyof Codes];

/** Returns the descriptions of error codes that are grouped by status. */
export function describeCodes<Codes extends ByStatus>(codes: Codes) {
  return Object.fromEntries(
    Object.entries(codes).flatMap(([status, described]) =>
      Object.entries(described).map(([code, [meaning, next]]) => [
        code,
        { status: Number(status), meaning, next },
      ]),
    ),
  ) as Record<CodeOf<Codes>, ProblemCodeDescription>;
}

/** What each error code means and how to resolve it. `invalid_<field>` exists for each field as well. */
export const PROBLEM_CODES = describeCodes({
  400: {
    invalid_request: [
      "The request is malformed, or several fields are invalid (422); `errors` lists each with what is wrong.",
      "Fix what `detail` and `errors` describe.",
    ],
    invalid_json: [
      "The body is missing or isn't valid JSON.",
      "Send a JSON body with Content-Type: application/json.",
    ],
  },
  401: {
    missing_token: ["The request has no access token.", "Send Authorization: Bearer <token>."],
    invalid_token: [
      "The access token is invalid, expired, revoked, or was issued for another resource, key or scheme.",
      "Get a new access token.",
    ],
    invalid_dpop_proof: [
      "The DPoP proof of a token that is bound to a key is missing, invalid, or was already used.",
      "Sign a new proof for this request with the key that the token is bound to.",
    ],
    use_dpop_nonce: [
      "The nonce of the DPoP proof has expired, or a proof without one is too old. `DPoP-Nonce` has a new nonce.",
      "Retry with a new proof that contains the nonce from `DPoP-Nonce`.",
    ],
  },
  403: {
    insufficient_scope: [
      "The access token lacks a required scope. `WWW-Authenticate` lists all required scopes.",
      "Get an access token with the required scopes.",
    ],
    password_required: [
      "The short link is protected by a password, or the password is wrong.",
      "Open the short URL in a browser and enter the password.",
    ],
    plan_required: [
      "The organization's plan doesn't include this.",
      "Ask an owner of the organization to upgrade to a paid plan.",
    ],
    organization_suspended: [
      "The operator suspended the organization that the token acts for, or the organization of the client.",
      "Ask an owner of the organization to contact the operator. Tokens work again once it is resumed.",
    ],
    quota_exceeded: [
      "The organization, or the user, has reached a quota. `detail` names it and its limit.",
      "Delete what you no longer need, or ask an owner of the organization to upgrade the plan.",
    ],
    origin_not_allowed: [
      "A web page of another origin called the MCP endpoint.",
      "Call from a server, or ask the operator to add the origin to ALLOWED_ORIGINS.",
    ],
  },
  404: {
    not_found: [
      "The resource doesn't exist or isn't yours.",
      "List the existing resources and use one of their IDs.",
    ],
  },
  405: {
    method_not_allowed: [
      "The URL doesn't support this method. `Allow` lists the methods it supports.",
      "Use one of the allowed methods.",
    ],
  },
  409: {
    slug_taken: [
      "The slug belongs to another link, or to one that was deleted.",
      "Choose another slug, or omit it for a random one.",
    ],
    external_id_taken: [
      "Another link of the organization has this external ID.",
      "Update that link, or choose another external ID.",
    ],
    count_mismatch: [
      "The filter matches another number of links than `expected_count`. No link was changed.",
      "List the links that match, and send their number if all of them should change.",
    ],
    idempotency_key_in_use: [
      "The first request with this idempotency key is still in progress.",
      "Retry the same request after the number of seconds in `Retry-After`.",
    ],
    secret_shown_once: [
      "The first request with this idempotency key succeeded. Its response had a webhook's secret, which is shown once.",
      "Find the webhook in the list. If you don't have its secret, rotate it with a new key.",
    ],
    link_disabled: [
      "The operator disabled the link, so it can't be changed. `disabled_reason` says why.",
      "Delete the link, or ask the operator to enable it.",
    ],
    domain_limit: [
      "The organization has reached its plan's limit of domains.",
      "Delete a domain that you no longer need, or upgrade the plan.",
    ],
    domain_exists: ["The organization already has this domain.", "Use that domain."],
    domain_unproven: [
      "The DNS record that verifies the domain isn't there, or has another value.",
      "Create the record in `dns`, wait until name servers know it, and verify again.",
    ],
    domain_taken: [
      "Another organization has proved the same host.",
      "Remove the record of the other organization, and verify again 7 days later.",
    ],
    domain_in_use: [
      "The domain has links, some of which couldn't be moved or deleted.",
      "Move or delete its links, then delete it.",
    ],
    webhook_limit: [
      "The organization has reached its plan's limit of webhooks.",
      "Delete a webhook that you no longer need.",
    ],
    webhook_exists: [
      "The organization already has a webhook with this URL.",
      "Update that webhook, or use another URL.",
    ],
    webhook_disabled: [
      "Events can't be sent to a disabled webhook.",
      "Enable the webhook once its endpoint is ready.",
    ],
    webhook_unverified: [
      "The webhook's endpoint hasn't accepted a test event yet.",
      "Send a test event, and resend the delivery once the endpoint responded with 2xx.",
    ],
  },
  410: {
    link_gone: [
      "The short link was deleted, archived or disabled, has expired, or has reached its click limit.",
      "Use another link. This one is no longer available.",
    ],
  },
  412: {
    precondition_failed: [
      "The resource has changed since the version in `If-Match`.",
      "Fetch the resource again and retry with its current ETag.",
    ],
  },
  413: {
    body_too_large: [
      "The body is larger than 64 KB, or than 1 MB if it has several links.",
      "Send less data, or split it into several requests.",
    ],
  },
  415: {
    unsupported_media_type: [
      "The media type, charset or compression of the body isn't supported.",
      "Send UTF-8 JSON, uncompressed or compressed with gzip, deflate or br.",
    ],
  },
  421: {
    misdirected_request: [
      "The request is for another host. `detail` names this server.",
      "Send the request to the URL of the server.",
    ],
  },
  422: {
    unknown_field: [
      "The request has a field that doesn't exist or can't be set; `errors` names it.",
      "Remove the field.",
    ],
    idempotency_key_reused: [
      "This idempotency key was used with a different request in the last 24 hours.",
      "Use a new key, or resend the original request unchanged.",
    ],
  },
  429: {
    rate_limited: [
      "The organization or the IP address sent too many requests in the current minute, or the organization has too many searches in progress.",
      "Retry after the number of seconds in `Retry-After`.",
    ],
  },
  500: {
    internal_error: [
      "Something went wrong on our end.",
      "Try again later. If the error persists, contact the operator with the request ID.",
    ],
  },
  501: {
    unsupported_transfer_encoding: [
      "The `Transfer-Encoding` isn't `chunked`.",
      "Send the body with Content-Length.",
    ],
  },
  503: {
    temporarily_unavailable: [
      "The service is temporarily unavailable, or a search took too long.",
      "Retry after the number of seconds in `Retry-After`.",
    ],
  },
});
export type ProblemCode = keyof typeof PROBLEM_CODES;

/** Returns how to resolve an error, without reference to headers, which agents don't see. */
export function nextStepOf({ code, headers }: { code: string; headers: Record<string, string> }): string {
  const seconds = headers["Retry-After"];
  if (seconds !== undefined) return `Wait ${seconds} seconds, then retry the same request.`;
  return PROBLEM_CODES[code as ProblemCode]?.next ?? "Fix the field that `errors` describes.";
}
