import type { Context } from "koa";

/**
 * Returns whether the library rejected a token because it looks like a JWT, which it does only for authenticated
 * clients. Our tokens are opaque, so such a token is merely unknown.
 */
export function isUnsupportedToken(ctx: Context): boolean {
  const { error } = (ctx.body ?? {}) as { error?: string };
  return ctx.status === 400 && error === "unsupported_token_type";
}
