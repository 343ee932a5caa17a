import { STATUS_CODES } from "node:http";
import type { Context, Middleware, Next } from "koa";

export type FieldError = { field: string; message: string };
type Extra = { errors?: FieldError[]; headers?: Record<string, string> };

/** An expected refusal: what RFC 9457 calls a problem. `code` is for programs, `detail` for people. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly errors: FieldError[] | undefined;
  readonly headers: Record<string, string>;

  constructor(status: number, code: string, detail: string, { errors, headers = {} }: Extra = {}) {
    super(detail);
    this.name = "Problem";
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.headers = headers;
  }
}

/** The body of a problem: RFC 9457 §3 with `code`, `request_id` and, for bad input, `errors`. */
export type ProblemBody = {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  request_id: string;
  errors?: FieldError[];
};

type ProblemOptions = {
  /** Where codes are explained; `type` is this address with the code as fragment. */
  docsUrl: string;
  /** Told about every error that is not a `Problem`; the caller sees none of it. */
  onError(error: unknown, ctx: Context): void;
};

/** Turns whatever is thrown below it into `application/problem+json`: the one place that does. */
export function problems({ docsUrl, onError }: ProblemOptions): Middleware {
  return async function answerProblems(ctx: Context, next: Next) {
    try {
      await next();
    } catch (error) {
      const problem = asProblem(error, () => onError(error, ctx));
      ctx.status = problem.status;
      ctx.set(problem.headers);
      ctx.body = toBody(problem, docsUrl, ctx.state.requestId);
      ctx.type = "application/problem+json";
    }
  };
}

/** The body of a problem for one request. */
export function toBody(problem: Problem, docsUrl: string, requestId: string): ProblemBody {
  return {
    type: `${docsUrl}#${problem.code}`,
    title: STATUS_CODES[problem.status] ?? "Error",
    status: problem.status,
    detail: problem.message,
    code: problem.code,
    request_id: requestId,
    ...(problem.errors && { errors: problem.errors }),
  };
}

/** What a port rejects with when what it stands for is away. */
const OUTAGES = new Set(["StorageUnavailable", "IntrospectionUnavailable"]);
const RETRY_AFTER_S = 2;

/** Any error as a refusal. `report` is called for one that nobody expected; of that one nothing is shown. */
export function asProblem(error: unknown, report: () => void): Problem {
  if (error instanceof Problem) return error;
  report();
  if (OUTAGES.has((error as Error)?.name)) {
    return new Problem(
      503,
      "temporarily_unavailable",
      "The service cannot answer for the moment: try again.",
      {
        headers: { "Retry-After": String(RETRY_AFTER_S) },
      },
    );
  }
  return new Problem(
    500,
    "internal_error",
    "Something went wrong on our side. The request id finds it in our log.",
  );
}

/** What is not there, and what is somebody else's: the caller cannot tell them apart. */
export function notFound(what: string): Problem {
  return new Problem(404, "not_found", `There is no such ${what}.`);
}
