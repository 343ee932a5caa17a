import type { ApiContext, ApiMiddleware } from "./api-context.ts";
import { type Problem, toProblem, toProblemBody } from "./problem.ts";

type ErrorHandlerOptions = {
  /** The URL of the documentation; `type` is this URL with the code as its fragment. */
  docsUrl: string;
  /** Called with each error that is not a `Problem`. The caller sees none of it. */
  onError(error: unknown, ctx: ApiContext): void;
  /** Returns what to do next; for agents, which read nothing but the body. */
  nextStep?(problem: Problem): string;
};

/** Creates middleware that turns errors into `application/problem+json` (RFC 9457). */
export function createErrorHandler({ docsUrl, onError, nextStep }: ErrorHandlerOptions): ApiMiddleware {
  return async function handleErrors(ctx, next) {
    try {
      await next();
    } catch (error) {
      const problem = toProblem(error, () => onError(error, ctx));
      const body = toProblemBody(problem, docsUrl, ctx.state.requestId);
      ctx.status = problem.status;
      ctx.set(problem.headers);
      ctx.body = nextStep ? { ...body, next: nextStep(problem) } : body;
      ctx.type = "application/problem+json";
    }
  };
}
