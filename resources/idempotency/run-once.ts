import { hash } from "node:crypto";
import type { Context } from "koa";
import type { ActiveToken } from "../access/introspect.ts";
import { isUnavailable, Problem, retryLater } from "../http/problem.ts";
import { invalidField } from "../http/validate.ts";

/** The response of an operation. REST sends all of it, MCP only the body. */
export type ServiceResponse = {
  status: number;
  headers?: Record<string, string>;
  body: Record<string, unknown>;
};

/** One attempt at an idempotent request. Only the latest attempt can still write. */
export type Attempt = {
  /** Returns the ids of links to create: the same in each attempt, so links that an earlier one created are found. */
  linkId(index: number): string;
  keep(answer: string): Promise<void>;
  /** Deletes the key, as if it had never been sent. */
  forget(): Promise<void>;
  /** Lets the next attempt start immediately. */
  release(): Promise<void>;
};

/** The scope of a key: a client, or a user through a client, in one organization. */
export type Principal = Pick<ActiveToken, "organizationId" | "clientId" | "userId">;

/** Gives the attempt to one of several concurrent requests with a key. Keeps responses for 24 hours, encrypted per principal. */
export type IdempotencyStore = {
  /** Returns `refused: "reused"` if the key belongs to a request with another fingerprint. */
  begin(
    principal: Principal,
    key: string,
    fingerprint: string,
  ): Promise<{ attempt: Attempt } | { answer: string } | { refused: "in_use" | "reused" }>;
};

/** A request with its key. REST and MCP use the same operation names and inputs, so they share keys. */
export type IdempotentRequest = {
  caller: Principal;
  key: string;
  operation: string;
  /** The body combined with the path parameters. */
  input: unknown;
  /** The field of the response that is shown once, and never stored. */
  shownOnce?: string;
};

/** Replays the operation's own errors (404, 409), too; others release the key. Throws Problem 409 or 422. */
export type RunOnce = (
  request: IdempotentRequest,
  perform: (attempt: Attempt) => Promise<ServiceResponse>,
) => Promise<ReplayableResponse>;
export type ReplayableResponse = ServiceResponse & {
  isReplayed: boolean;
  /** Whether the original response had a secret, which was shown once and isn't stored. */
  omitsSecret?: boolean;
};

// These names are stored, so they must not change: `refusal` holds a problem.
type Stored = { answer: ServiceResponse; omitsSecret?: boolean } | { refusal: ReturnType<Problem["toJSON"]> };

export const KEY_RULE = "must be 1 to 255 visible ASCII characters";
export const KEY = /^[\x21-\x7e]{1,255}$/;

const REPLAYED_HEADER = { "Idempotency-Replayed": "true" };

/** The statuses of errors that are replayed, because they depend on the stored data and not only on the request. */
export const REPLAYED_ERRORS: ReadonlySet<number> = new Set([404, 409]);

// A concurrent request with the same key usually takes less.
const RETRY_AFTER_S = 1;
// No valid input is nested this deeply. Deeper input is rejected, so the rest doesn't matter to the fingerprint.
const MAX_DEPTH = 8;

/** @param report called if a response can't be stored; the caller still receives it */
export function createRunOnce(store: IdempotencyStore, report: (error: unknown) => void): RunOnce {
  return async ({ caller, key, operation, input, shownOnce = "secret" }, perform) => {
    const fingerprint = fingerprintOf(operation, input);
    const begun = await store.begin(caller, key, fingerprint);
    if ("refused" in begun) throw begun.refused === "in_use" ? keyInUse() : keyReused();
    if ("answer" in begun) return replay(JSON.parse(begun.answer));
    const { attempt } = begun;
    const keep = (stored: Stored) => attempt.keep(JSON.stringify(stored)).catch(report);
    try {
      const answer = await perform(attempt);
      const { [shownOnce]: secret, ...body } = answer.body ?? {};
      await keep({ answer: { ...answer, body }, omitsSecret: secret !== undefined });
      return { ...answer, isReplayed: false };
    } catch (error) {
      if (isUnavailable(error)) void attempt.release().catch(() => {});
      else if (!(error instanceof Problem) || error.status >= 500) await attempt.release().catch(report);
      else if (REPLAYED_ERRORS.has(error.status)) await keep({ refusal: error.toJSON() });
      else await attempt.forget().catch(report);
      throw error;
    }
  };
}

/** @throws Problem if the stored response is an error */
function replay(stored: Stored): ReplayableResponse {
  if ("answer" in stored)
    return { ...stored.answer, isReplayed: true, omitsSecret: stored.omitsSecret ?? false };
  const { status, code, detail, errors } = stored.refusal;
  throw new Problem(status, code, detail, { ...(errors && { errors }), headers: REPLAYED_HEADER });
}

function keyInUse(): Problem {
  const detail = "The first request with this idempotency key is still in progress.";
  return retryLater(409, "idempotency_key_in_use", detail, RETRY_AFTER_S);
}

function keyReused(): Problem {
  const detail = "This idempotency key was used with a different request. Use a new key.";
  return new Problem(422, "idempotency_key_reused", detail);
}

/** Returns a digest of an operation and its input that doesn't depend on the order of fields. */
export function fingerprintOf(operation: string, input: unknown): string {
  return hash("sha256", JSON.stringify([operation, sortFields(input)]), "base64url");
}

function sortFields(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth > MAX_DEPTH) return null;
  if (Array.isArray(value)) return value.map((item) => sortFields(item, depth + 1));
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(fields.map(([name, field]) => [name, sortFields(field, depth + 1)]));
}

/** Responds to a POST with an `Idempotency-Key` header (draft-ietf-httpapi-idempotency-key-header-07). */
export async function respondOnce(
  ctx: Context,
  operation: Omit<IdempotentRequest, "key" | "input">,
  perform: (attempt: Attempt) => Promise<ServiceResponse>,
  runOnce: RunOnce,
): Promise<ServiceResponse> {
  const request = { ...operation, key: readKey(ctx), input: inputOf(ctx) };
  const { isReplayed, omitsSecret, ...response } = await runOnce(request, perform);
  if (omitsSecret) throw secretShownOnce();
  return isReplayed ? { ...response, headers: { ...response.headers, ...REPLAYED_HEADER } } : response;
}

/** @throws Problem 422 for an invalid key, and for more than one */
function readKey(ctx: Context): string {
  // Node joins several with ", ", and a valid key has no space.
  const key = ctx.get("idempotency-key");
  if (KEY.test(key)) return key;
  throw invalidField("Idempotency-Key", KEY_RULE, "invalid_idempotency_key");
}

function inputOf({ params, request: { body } }: Context): unknown {
  if (body === undefined) return params;
  return typeof body === "object" && body !== null && !Array.isArray(body) ? { ...body, ...params } : [body];
}

function secretShownOnce(): Problem {
  const detail =
    "The first request with this idempotency key succeeded. Its response had a secret, which is shown once.";
  return new Problem(409, "secret_shown_once", detail, { headers: REPLAYED_HEADER });
}
