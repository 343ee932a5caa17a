import { STATUS_CODES } from "node:http";
import type { Context, Middleware } from "koa";
import { z } from "zod";

export const fieldErrorSchema = z.object({
  field: z.string().describe("The field, such as `url` or `metadata.key`. Empty for the body itself."),
  message: z.string().describe("What is wrong with it, such as `must be a string`."),
});
export type FieldError = z.output<typeof fieldErrorSchema>;
type Extra = {
  errors?: FieldError[];
  headers?: Record<string, string>;
  /** Extension members of the body (RFC 9457 §3.2). */
  members?: Record<string, unknown>;
};

/** An expected error, sent to the caller as RFC 9457 describes. Programs read `code`, users read `detail`. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly errors: FieldError[] | undefined;
  readonly headers: Record<string, string>;
  readonly members: Record<string, unknown> | undefined;
  constructor(status: number, code: string, detail: string, { errors, headers = {}, members }: Extra = {}) {
    super(detail);
    this.name = "Problem";
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.headers = headers;
    this.members = members;
  }

  /** What it says to the caller, wherever that is shown or stored. */
  toJSON() {
    const { status, message: detail, code, errors } = this;
    return { status, detail, code, ...(errors && { errors }) };
  }
}

/** The body of an error response: RFC 9457 §3 with `code`, `request_id` and, for invalid input, `errors`. */
export const problemSchema = z
  .object({
    type: z.url().describe("The documentation of the code."),
    title: z.string().describe("The HTTP status as text."),
    status: z.int().describe("The HTTP status."),
    detail: z.string().describe("An explanation for users."),
    code: z.string().describe("The error code. Branch on this."),
    request_id: z.string().describe("Identifies the request in the server's log."),
    errors: z.array(fieldErrorSchema).optional().describe("The invalid fields, up to 20."),
  })
  .meta({
    title: "Problem",
    examples: [
      {
        type: "https://links.example/docs/errors/invalid_url",
        title: "Unprocessable Entity",
        status: 422,
        detail: "url must be an http or https URL.",
        code: "invalid_url",
        request_id: "0b9d6a3c-7f0e-4f0e-9a55-3c9d1f6a2b10",
        errors: [{ field: "url", message: "must be an http or https URL" }],
      },
    ],
  });

export type ProblemBody = z.output<typeof problemSchema>;

/** Returns the URL of the page that documents an error code. */
export function errorUrl(base: string, code: string): string {
  return `${base}/docs/errors/${encodeURIComponent(code)}`;
}

/** `base` is the URL of the server. */
export function toProblemBody(problem: Problem, base: string, requestId: string): ProblemBody {
  return {
    type: errorUrl(base, problem.code),
    title: STATUS_CODES[problem.status] ?? "Error",
    ...problem.toJSON(),
    request_id: requestId,
    ...problem.members,
  };
}

/** Returns a 503 for an outage, else a 500. Both are passed to `report`; the message isn't exposed. */
export function toProblem(error: unknown, report: () => void): Problem {
  if (error instanceof Problem) return error;
  report();
  if (isUnavailable(error)) {
    const detail = "The service is temporarily unavailable. Try again.";
    return retryLater(503, "temporarily_unavailable", detail, RETRY_AFTER_S);
  }
  const detail = "Something went wrong on our end. The error has been logged with this request ID.";
  return new Problem(500, "internal_error", detail);
}

export function retryLater(status: number, code: string, detail: string, seconds: number): Problem {
  return new Problem(status, code, detail, { headers: { "Retry-After": String(seconds) } });
}

/** Returns a 404: for something that doesn't exist and for another organization's, which callers can't tell apart. */
export function notFound(kind: string): Problem {
  const [initial = "", ...rest] = kind;
  return new Problem(404, "not_found", `${initial.toUpperCase()}${rest.join("")} not found.`);
}

/** @throws Problem 404 for a missing value */
export function found<T>(value: T | undefined, kind: string): T {
  if (value === undefined) throw notFound(kind);
  return value;
}

/** @throws Problem 404 if no item has the ID */
export function foundIn<T extends { id: string }>(items: readonly T[], id: unknown, kind: string): T {
  const item = items.find((one) => one.id === id);
  return found(item, kind);
}

type ErrorHandlerOptions = {
  /** The URL of the server, whose documentation has a page for each code. */
  base: string;
  /** Called with each error that is not a `Problem`. The caller sees none of it. */
  onError(error: unknown, ctx: Context): void;
  nextStep?(problem: Problem): string;
};

/** Creates middleware that turns errors into `application/problem+json` (RFC 9457). */
export function createErrorHandler({ base, onError, nextStep }: ErrorHandlerOptions): Middleware {
  return async function handleErrors(ctx, next) {
    try {
      await next();
    } catch (error) {
      const problem = toProblem(error, () => onError(error, ctx));
      const body = toProblemBody(problem, base, ctx.state.requestId);
      ctx.status = problem.status;
      ctx.set(problem.headers);
      ctx.body = nextStep ? { ...body, next: nextStep(problem) } : body;
      ctx.type = "application/problem+json";
    }
  };
}

/** The `code` of an error that means an outage of a dependency, so a retry may succeed. */
export const UNAVAILABLE = "ERR_UNAVAILABLE";

/** When to retry after an outage: by then, what it interrupted holds no idempotency key. */
export const RETRY_AFTER_S = 5;

export function isUnavailable(error: unknown): boolean {
  return (error as { code?: unknown } | null | undefined)?.code === UNAVAILABLE;
}
