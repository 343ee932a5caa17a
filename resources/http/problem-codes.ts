/** What a refusal means, and what to do about it; shown on the page of the documentation. */
export type Explanation = { status: number; meaning: string; next: string };

/** Every code of a problem but `invalid_<field>`, of which each field has one. */
export const PROBLEMS = {
  invalid_request: {
    status: 400,
    meaning:
      "The request contradicts itself, or several fields are wrong (422): `errors` names each with its rule.",
    next: "Correct what the detail and `errors` name.",
  },
  invalid_json: {
    status: 400,
    meaning: "The body is missing or is not JSON.",
    next: "Send one JSON value with Content-Type: application/json.",
  },
  missing_token: {
    status: 401,
    meaning: "The request carries no access token.",
    next: "Send Authorization: Bearer <token>.",
  },
  invalid_token: {
    status: 401,
    meaning: "The access token is unknown, expired, revoked, or for another resource.",
    next: "Get a new access token.",
  },
  insufficient_scope: {
    status: 403,
    meaning: "The access token lacks a scope that this needs; WWW-Authenticate names every one.",
    next: "Get an access token with the scopes that are named.",
  },
  plan_required: {
    status: 403,
    meaning: "The plan of the organization does not include this.",
    next: "Ask an owner of the organization to move it to a paid plan.",
  },
  origin_not_allowed: {
    status: 403,
    meaning: "A page of another origin called the MCP endpoint.",
    next: "Call from a server, or have the origin added to the settings of the service.",
  },
  not_found: {
    status: 404,
    meaning: "There is nothing of the kind, or it belongs to somebody else.",
    next: "List what there is, and use an id from there.",
  },
  method_not_allowed: {
    status: 405,
    meaning: "The address exists, but not for this method; Allow names those that it has.",
    next: "Use a method that Allow names.",
  },
  slug_taken: {
    status: 409,
    meaning: "The slug belongs to another link, or belonged to one that was deleted.",
    next: "Choose another slug, or leave it out for a random one.",
  },
  external_id_taken: {
    status: 409,
    meaning: "Another link of the organization has this external id.",
    next: "Change that link, or choose another external id.",
  },
  idempotency_key_in_use: {
    status: 409,
    meaning: "The first request with this Idempotency-Key is still under way.",
    next: "Send the same again after as many seconds as Retry-After says.",
  },
  webhook_limit: {
    status: 409,
    meaning: "The organization has as many webhooks as its plan allows.",
    next: "Delete one that is not needed any more.",
  },
  webhook_disabled: {
    status: 409,
    meaning: "Nothing is sent to a webhook that is disabled.",
    next: "Enable the webhook, when its receiver is ready.",
  },
  link_gone: {
    status: 410,
    meaning: "The short link was deleted or archived, has expired, or has used up its clicks.",
    next: "Nothing: the link does not lead anywhere any more.",
  },
  precondition_failed: {
    status: 412,
    meaning: "What is to be changed was changed meanwhile: If-Match names an older version.",
    next: "Read it again, and send the change with the new ETag.",
  },
  body_too_large: {
    status: 413,
    meaning: "The body has more than 1 MB.",
    next: "Send less at a time.",
  },
  unsupported_media_type: {
    status: 415,
    meaning: "The body is of another type, charset or compression than is read here.",
    next: "Send UTF-8 JSON, plain or compressed with gzip, deflate or br.",
  },
  unknown_field: {
    status: 422,
    meaning: "A field was sent that does not exist or cannot be set here; `errors` names it.",
    next: "Leave the field out.",
  },
  idempotency_key_reused: {
    status: 422,
    meaning: "This Idempotency-Key was sent with another request within the last 24 hours.",
    next: "Take a new key; to repeat a request, send exactly the same.",
  },
  rate_limited: {
    status: 429,
    meaning: "Too many calls within a minute, by the organization or from one address.",
    next: "Wait for as many seconds as Retry-After says.",
  },
  internal_error: {
    status: 500,
    meaning: "Something went wrong on our side.",
    next: "Try again later; if it goes on, tell us the request id.",
  },
  temporarily_unavailable: {
    status: 503,
    meaning: "The service cannot answer for the moment.",
    next: "Try again after as many seconds as Retry-After says.",
  },
} as const satisfies Record<string, Explanation>;

export type ProblemCode = keyof typeof PROBLEMS;

/** What to do about a refusal, in words that need no header to be read. */
export function nextStepOf(code: string, headers: Record<string, string> = {}): string {
  const seconds = headers["Retry-After"];
  if (seconds !== undefined) return `Wait ${seconds} seconds, then send the same again.`;
  const known = PROBLEMS as Record<string, Explanation>;
  return known[code]?.next ?? "Correct the field by the rule that `errors` tells.";
}
