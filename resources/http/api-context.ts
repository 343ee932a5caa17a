import type { Context, Next } from "koa";

/** What the operations of the API use of Koa's context. */
export type ApiContext = Pick<
  Context,
  "req" | "method" | "path" | "query" | "ip" | "state" | "get" | "set" | "status" | "body" | "type"
> & {
  /** The parameters of the path. Unset if the route has none. */
  params?: Record<string, string>;
  request: Pick<Context["request"], "body" | "get">;
};

export type ApiMiddleware = (ctx: ApiContext, next: Next) => unknown;

/** The response of an operation, without a body for 204. REST sends all of it, MCP only the body. */
export type ServiceResponse = {
  status: number;
  headers?: Record<string, string>;
  body: Record<string, unknown>;
};
export type OperationResponse = ServiceResponse | { status: 204; headers?: never; body?: undefined };
