/** The headers of responses of the API, as its documentation describes them. */
export const RESPONSE_HEADERS = {
  ETag: "The version of the resource, for `If-Match` and `If-None-Match`. It changes with what callers can change: neither the clicks of a link nor the verification of a webhook change it.",
  Location: "The URL of the created resource.",
  "Accept-Patch": "The content types that PATCH accepts (RFC 5789).",
  "Retry-After": "Seconds to wait before the next request.",
  RateLimit:
    'Requests left in the current window, and the seconds until it resets: `"organization";r=599;t=42`.',
  "RateLimit-Policy": 'The limit, and its window in seconds: `"organization";q=600;w=60`.',
  "WWW-Authenticate":
    "Why the token was rejected (RFC 6750, RFC 9449), and the URL of the resource's metadata (RFC 9728).",
  "DPoP-Nonce": "The nonce for the next DPoP proof (RFC 9449). Only sent to callers that use DPoP.",
  "X-Request-Id": "Identifies the request in the server's log.",
  "Idempotency-Replayed":
    "`true` if this is the response to an earlier request with the same idempotency key.",
} as const;
export type ResponseHeader = keyof typeof RESPONSE_HEADERS;

/** The headers of conditional and repeatable requests. */
export const REQUEST_HEADERS = {
  "If-Match": "An ETag. The request fails with 412 if the resource has changed since.",
  "If-None-Match": "An ETag. The response is 304 without a body if the resource still has it.",
  "Idempotency-Key":
    "1 to 255 visible ASCII characters, unique to each operation, such as a UUID. Retrying a request with the same key within 24 hours returns the original response without performing the operation again, even if one request uses REST and the other MCP. Keys are scoped to the client and the user it acts for. Errors 404 and 409 are replayed too, so use a new key once you have resolved the cause. After any other error, you can retry with the same key. If the server crashes during a request, the key is released within 5 seconds. Retrying then returns the links that were already created; other operations may run twice.",
} as const;
export type RequestHeader = keyof typeof REQUEST_HEADERS;
