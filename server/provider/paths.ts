import type { Context, Middleware } from "koa";
import { requireMethod } from "../../resources/http/methods.ts";
import { Problem } from "../../resources/http/problem.ts";
import type { Settings } from "../settings/config.ts";

/** The path of the client registration endpoint. */
export const REGISTRATION_PATH = "/oauth/register";

/** The path that reports of leaked credentials are sent to. */
export const LEAK_REPORT_PATH = "/oauth/leaked-credentials";

/** The path of the public keys. */
const KEYS_PATH = "/oauth/jwks";

const METHODS: Record<string, string[]> = {
  "/oauth/authorize": ["GET", "HEAD", "POST"],
  "/oauth/token": ["POST"],
  "/oauth/revoke": ["POST"],
  "/oauth/introspect": ["POST"],
  "/oauth/par": ["POST"],
  "/oauth/userinfo": ["GET", "HEAD", "POST"],
  [KEYS_PATH]: ["GET", "HEAD"],
  "/oauth/session/end/confirm": ["POST"],
};
const RESUME = /^\/oauth\/authorize\/[A-Za-z0-9_-]+$/;

// The only paths under `/oauth` that a browser opens, so their errors are pages.
const PAGES = /^\/oauth\/(authorize(\/|$)|session\/end\/confirm$)/;

/**
 * Rejects paths under `/oauth` that differ from ours in case or by a trailing slash. oidc-provider's router accepts them,
 * and they would bypass the rate limits, which match paths exactly. Responses may not be stored, unless a later step says
 * so (RFC 6749 §5.1).
 */
export function requireOauthPath({ DYNAMIC_REGISTRATION, LEAK_REPORT_KEYS }: Settings): Middleware {
  const methodsByPath = { ...METHODS };
  if (DYNAMIC_REGISTRATION !== "off") methodsByPath[REGISTRATION_PATH] = ["POST"];
  if (LEAK_REPORT_KEYS) methodsByPath[LEAK_REPORT_PATH] = ["POST"];
  return function requireExactPath(ctx, next) {
    if (ctx.path !== KEYS_PATH) ctx.set("Cache-Control", "no-store");
    const methods = methodsByPath[ctx.path] ?? (RESUME.test(ctx.path) ? ["GET", "HEAD"] : undefined);
    if (!methods) {
      throw new Problem(404, "not_found", "There is no endpoint at this path.");
    }
    return isPreflight(ctx) ? next() : requireMethod(ctx, methods, next);
  };
}

/** Returns whether a browser asks if a script of another origin may send a request. */
function isPreflight(ctx: Context): boolean {
  return (
    ctx.method === "OPTIONS" && ctx.get("origin") !== "" && isClientPath(ctx) && ctx.path !== LEAK_REPORT_PATH
  );
}

/** Returns whether a path is under `/oauth`, in any case. */
export function isOauthPath({ path }: Context): boolean {
  return /^\/oauth(\/|$)/i.test(path);
}

/** Returns whether a path is that of the client registration endpoint. */
export function isRegistrationPath({ path }: Context): boolean {
  return path === REGISTRATION_PATH;
}

/** Returns whether a path belongs to the authorization endpoint: the request, its pages, and the return from them. */
export function isAuthorizationPath({ path }: Context): boolean {
  return path === "/oauth/authorize" || RESUME.test(path) || path.startsWith("/interaction/");
}

/** Returns whether only clients call a path, never browsers: the endpoints, the keys and the metadata documents. */
export function isClientPath(ctx: Context): boolean {
  return (isOauthPath(ctx) || ctx.path.startsWith("/.well-known/")) && !PAGES.test(ctx.path);
}
