import type { ApiContext } from "./api-context.ts";

/** The response of an operation. REST sends all of it, MCP only the body. */
export type ServiceResponse = {
  status: number;
  headers?: Record<string, string>;
  body: Record<string, unknown>;
};

export function respond(ctx: ApiContext, { status, headers = {}, body }: ServiceResponse): void {
  ctx.status = status;
  ctx.set(headers);
  ctx.body = body;
}
