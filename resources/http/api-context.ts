import type { Context, Middleware, Next } from "koa";

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

export type ApiMiddleware = (ctx: ApiContext, next: Next) => unknown;

/** A frequent request, and its middleware, which also serves it in Koa if it is sent in another form. */
export type FastPath = {
  method: "GET" | "POST";
  host: string;
  /** The path, without a query; or a pattern, such as `/:slug`, of the paths that `matches` accepts. */
  path: string;
  matches?(path: string): boolean;
  steps: Middleware[];
};

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

export function idOf(ctx: ApiContext): string {
  return ctx.params?.id as string;
}
