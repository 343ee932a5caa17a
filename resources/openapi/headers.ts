/** Headers of answers, as the document describes them. */
export const ANSWER_HEADERS = {
  ETag: "The version of what is shown; clicks do not change it. Send it back as If-Match or If-None-Match.",
  Location: "The address of what was made.",
  "Retry-After": "Seconds to wait before the next call.",
  RateLimit:
    'What is left of the limit that this call counted against, and the seconds until all of it is back: `"organization";r=599;t=42`.',
  "RateLimit-Policy": 'That limit, and the seconds that it is for: `"organization";q=600;w=60`.',
  "WWW-Authenticate": "What the token lacks (RFC 6750), and where that is described (RFC 9728).",
  "X-Request-Id": "Finds the request in our log.",
  "Idempotency-Replayed":
    "`true` when this is the answer to an earlier request with the same Idempotency-Key.",
} as const;
export type AnswerHeader = keyof typeof ANSWER_HEADERS;

/** Headers of requests, as the document describes them. */
export const REQUEST_HEADERS = {
  "If-Match": "An ETag: the call is refused with 412 if it is not that of now.",
  "If-None-Match": "An ETag: the answer is 304, without a body, if it is still that of now.",
  "Idempotency-Key":
    "1 to 255 visible ASCII characters, new for each thing that you want done; a UUID will do. Sent again within 24 hours, the same request gets the same answer and is not done twice, also when one came over REST and the other over MCP. Keys are scoped to the client and to the user it acts for: the same key from another client or user is another key. What was refused for its input, its token or a limit, and what failed on our side, is tried anew; a refusal with 404 or 409 is repeated: take a new key once its cause is gone. If a server dies in between, the key is free again within a minute: links that it made are then found again, anything else may be done a second time.",
} as const;
export type RequestHeader = keyof typeof REQUEST_HEADERS;
