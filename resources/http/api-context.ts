import type { Context, Next } from "koa";

/** What the operations of the API use of Koa's context. */
export type ApiContext = Pick<
  Context,
  "req" | "method" | "path" | "query" | "ip" | "state" | "get" | "set" | "status" | "body" | "type"
> & {
  /** The parameters of the path. Unset if the route has none. */
  params?: Record<string, string>;
  request: Pick<Context["request"], "body" | "get">;
  response: Pick<Context["response"], "get">;
};

/** A step of an operation. It runs in Koa as well. */
export type ApiMiddleware = (ctx: ApiContext, next: Next) => unknown;
