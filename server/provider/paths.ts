import type { Middleware } from "koa";

const METHODS: Record<string, string[]> = {
  "/oauth/authorize": ["GET", "POST"],
  "/oauth/token": ["POST", "OPTIONS"],
  "/oauth/revoke": ["POST", "OPTIONS"],
  "/oauth/introspect": ["POST", "OPTIONS"],
  "/oauth/par": ["POST", "OPTIONS"],
  "/oauth/jwks": ["GET", "HEAD", "OPTIONS"],
  "/oauth/session/end/confirm": ["POST"],
};
const RESUME = /^\/oauth\/authorize\/[A-Za-z0-9_-]+$/;

/**
 * The addresses under `/oauth`, to the letter: the library's router also takes other cases and a trailing slash, and
 * a limit that is kept by address could be walked around.
 */
export const oauthPaths: Middleware = async function checkOauthPath(ctx, next) {
  if (!/^\/oauth(\/|$)/i.test(ctx.path)) return next();
  const methods = METHODS[ctx.path] ?? (RESUME.test(ctx.path) ? ["GET"] : undefined);
  if (!methods) {
    ctx.status = 404;
    ctx.body = { error: "not_found", error_description: "there is no such address" };
    return;
  }
  if (methods.includes(ctx.method)) return next();
  ctx.status = 405;
  ctx.set("Allow", methods.join(", "));
  ctx.body = { error: "invalid_request", error_description: `use ${methods.join(" or ")}` };
};
