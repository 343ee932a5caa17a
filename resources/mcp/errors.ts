import type { CallToolResult } from "@modelcontextprotocol/server";
import type { Middleware } from "koa";
import { createErrorHandler } from "../http/error-handler.ts";
import { type Problem, toProblem } from "../http/problem.ts";
import { nextStepOf } from "../http/problem-codes.ts";

const nextStep = ({ code, headers }: Problem): string => nextStepOf(code, headers);

/** Creates middleware that answers requests rejected before a tool runs, as REST does but with the next step. */
export function createMcpErrorHandler(
  options: Omit<Parameters<typeof createErrorHandler>[0], "nextStep">,
): Middleware {
  return createErrorHandler({ ...options, nextStep });
}

/**
 * Converts an error of a tool to a result that the agent can act on. As text only: clients of the 2025 revisions validate
 * structured content against the output schema, even in an error.
 */
export function toErrorResult(error: unknown, requestId: string, report: () => void): CallToolResult {
  const problem = toProblem(error, report);
  const { status, code, message, errors } = problem;
  const body = {
    status,
    code,
    detail: message,
    next: nextStep(problem),
    request_id: requestId,
    ...(errors && { errors }),
  };
  return { isError: true, content: [{ type: "text", text: JSON.stringify(body) }] };
}
