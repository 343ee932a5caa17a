import { hash } from "node:crypto";
import type { Answer } from "./answer.ts";
import type { ActiveToken } from "./ports.ts";
import { type FieldError, Problem } from "./problem.ts";

/** One try to do what a request with an Idempotency-Key asks for. Only the newest one can still write. */
export type Attempt = {
  /** Ids for the links that it makes: the same in each attempt, so that what an earlier one made is found again. */
  linkId(index: number): string;
  /** Keeps the answer, to be given again. */
  keep(answer: string): Promise<void>;
  /** As if the key had never been sent. */
  forget(): Promise<void>;
  /** Lets the next attempt begin at once. */
  release(): Promise<void>;
};

/** Whose keys they are: those of a client, or of a user through a client, for one organization. */
export type Principal = Pick<ActiveToken, "organizationId" | "clientId" | "userId">;

/**
 * Where the answers of requests with an Idempotency-Key are kept: for 24 hours, encrypted, per principal. A key reveals
 * nothing to another principal, not even that it is in use. However many begin with one key at once, in however many
 * processes, one gets the attempt.
 */
export type IdempotencyStore = {
  /**
   * Begins a request, or tells what became of it. An attempt that has neither answered nor given up after a minute has
   * died, and the next one may begin. `reused`: the key belongs to a request with another fingerprint.
   */
  begin(
    principal: Principal,
    key: string,
    fingerprint: string,
  ): Promise<{ attempt: Attempt } | { answer: string } | { refused: "in_use" | "reused" }>;
};

/** A request with its key, in the words of the operation: a REST call and the tool of the same name are one. */
export type Keyed = {
  caller: Principal;
  key: string;
  /** The operationId. */
  operation: string;
  /** The body, with what stands in the path. */
  input: unknown;
};

/**
 * Does once what is asked for any number of times with one key. What was done is answered again, and so is a refusal
 * that came of doing it (404, 409). What was refused before that (input, limits) or failed (5xx) leaves the key free.
 * @throws Problem 409 while it is under way, 422 for a key of another request
 */
export type Once = (request: Keyed, perform: (attempt: Attempt) => Promise<Answer>) => Promise<Replayable>;
export type Replayable = Answer & { isReplayed: boolean };

type Refusal = { status: number; code: string; detail: string; errors?: FieldError[] };
type Kept = { answer: Answer } | { refusal: Refusal };

/** The same in words. */
export const KEY_RULE = "This must have 1 to 255 visible ASCII characters.";
/** What a key is made of. */
export const KEY = /^[\x21-\x7e]{1,255}$/;

/** The header of an answer that was given before. */
export const REPLAYED = { "Idempotency-Replayed": "true" };

/** Refusals that come of what there is, not of how it was asked for. */
export const KEPT_REFUSALS: ReadonlySet<number> = new Set([404, 409]);

// Another request may be the one that is under way: it takes a moment.
const RETRY_AFTER_S = 1;
// Nothing that is accepted is nested so deep; what is, is refused whatever else is in it.
const DEEPEST = 8;

/** @param report told when an answer could not be kept: the caller has it all the same */
export function createOnce(store: IdempotencyStore, report: (error: unknown) => void): Once {
  return async ({ caller, key, operation, input }, perform) => {
    const fingerprint = fingerprintOf(operation, input);
    const begun = await store.begin(caller, key, fingerprint);
    if ("refused" in begun) throw refusals[begun.refused]();
    if ("answer" in begun) return replay(JSON.parse(begun.answer));
    const { attempt } = begun;
    const keep = (kept: Kept) => attempt.keep(JSON.stringify(kept)).catch(report);
    try {
      const answer = await perform(attempt);
      await keep({ answer });
      return { ...answer, isReplayed: false };
    } catch (error) {
      if (!(error instanceof Problem) || error.status >= 500) await attempt.release().catch(report);
      else if (KEPT_REFUSALS.has(error.status)) await keep({ refusal: toRefusal(error) });
      else await attempt.forget().catch(report);
      throw error;
    }
  };
}

/** @throws Problem for a refusal */
function replay(kept: Kept): Replayable {
  if ("answer" in kept) return { ...kept.answer, isReplayed: true };
  const { status, code, detail, errors } = kept.refusal;
  throw new Problem(status, code, detail, { ...(errors && { errors }), headers: REPLAYED });
}

function toRefusal({ status, code, message, errors }: Problem): Refusal {
  return { status, code, detail: message, ...(errors && { errors }) };
}

const refusals = {
  in_use: () =>
    new Problem(
      409,
      "idempotency_key_in_use",
      "The first request with this Idempotency-Key is still under way.",
      {
        headers: { "Retry-After": String(RETRY_AFTER_S) },
      },
    ),
  reused: () =>
    new Problem(
      422,
      "idempotency_key_reused",
      "This Idempotency-Key was sent with another request: take a new one.",
    ),
};

/** The same for the same operation and input, in whichever order the fields were written. */
export function fingerprintOf(operation: string, input: unknown): string {
  return hash("sha256", JSON.stringify([operation, sorted(input)]), "base64url");
}

function sorted(value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth > DEEPEST) return null;
  if (Array.isArray(value)) return value.map((item) => sorted(item, depth + 1));
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(fields.map(([name, field]) => [name, sorted(field, depth + 1)]));
}
