import type { Context } from "koa";

/** What an operation answers, whichever face it was called through; MCP shows the body alone. */
export type Answer = { status: number; headers?: Record<string, string>; body: Record<string, unknown> };

/** Answers a request over HTTP. */
export function give(ctx: Context, { status, headers = {}, body }: Answer): void {
  ctx.status = status;
  ctx.set(headers);
  ctx.body = body;
}
