import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import { toProblem } from "../http/problem.ts";

/** The context of one HTTP request to MCP. */
export type McpRequest = { caller: AuthenticatedCaller; requestId: string; report(error: unknown): void };

/** Answers what isn't a tool call, whose errors have no result to be in. @throws ProtocolError */
export async function asProtocolError<Result>(
  { requestId, report }: McpRequest,
  answer: () => Promise<Result>,
): Promise<Result> {
  try {
    return await answer();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const { status, code, message } = toProblem(error, () => report(error));
    throw new ProtocolError(ProtocolErrorCode.InternalError, message, {
      status,
      code,
      request_id: requestId,
    });
  }
}
