import { STATUS_CODES } from "node:http";
import type { Context, Middleware, Next } from "koa";
import { z } from "zod";

/** One wrong field of the input. */
export const fieldErrorSchema = z.object({
  field: z.string().describe("The field, such as url or metadata.key; empty for the body itself."),
  message: z.string().describe("Its rule."),
});
export type FieldError = z.output<typeof fieldErrorSchema>;
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
export const problemSchema = z
  .object({
    type: z.url().describe("Where the code is explained."),
    title: z.string().describe("The status in words."),
    status: z.int(),
    detail: z.string().describe("What was wrong with this request, for people."),
    code: z.string().describe("What was wrong, for programs."),
    request_id: z.string().describe("Finds the request in our log."),
    errors: z.array(fieldErrorSchema).optional().describe("The fields that are wrong, at most twenty."),
  })
  .meta({
    title: "Problem",
    examples: [
      {
        type: "https://links.example/docs#invalid_url",
        title: "Unprocessable Entity",
        status: 422,
        detail: "url: The scheme must be http or https.",
        code: "invalid_url",
        request_id: "0b9d6a3c-7f0e-4f0e-9a55-3c9d1f6a2b10",
        errors: [{ field: "url", message: "The scheme must be http or https." }],
      },
    ],
  });

export type ProblemBody = z.output<typeof problemSchema>;

type ProblemOptions = {
  /** Where codes are explained; `type` is this address with the code as fragment. */
  docsUrl: string;
  /** Told about every error that is not a `Problem`; the caller sees none of it. */
  onError(error: unknown, ctx: Context): void;
  /** Says what to do next: for agents, who read the body alone. */
  nextStep?(problem: Problem): string;
};

/** Turns whatever is thrown below it into `application/problem+json`: the one place that does. */
export function problems({ docsUrl, onError, nextStep }: ProblemOptions): Middleware {
  return async function answerProblems(ctx: Context, next: Next) {
    try {
      await next();
    } catch (error) {
      const problem = asProblem(error, () => onError(error, ctx));
      ctx.status = problem.status;
      ctx.set(problem.headers);
      const body = toBody(problem, docsUrl, ctx.state.requestId);
      ctx.body = nextStep ? { ...body, next: nextStep(problem) } : body;
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
