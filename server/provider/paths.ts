import type { Context, Middleware } from "koa";
import { Problem } from "../../resources/http/problem.ts";
import { requireMethod } from "../../resources/http/routing.ts";
import type { Settings } from "../settings/config.ts";

export const REGISTRATION_PATH = "/oauth/register";

export const LEAK_REPORT_PATH = "/oauth/leaked-credentials";

const KEYS_PATH = "/oauth/jwks";

/** RFC 8414 §3, OpenID Connect Discovery §4: two addresses of the same document. */
export const METADATA_PATHS = [
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
];

export const OAUTH_METHODS: Record<string, string[]> = {
  "/oauth/authorize": ["GET", "HEAD", "POST"],
  "/oauth/token": ["POST"],
  "/oauth/revoke": ["POST"],
  "/oauth/introspect": ["POST"],
  "/oauth/par": ["POST"],
  "/oauth/userinfo": ["GET", "HEAD", "POST"],
  [KEYS_PATH]: ["GET", "HEAD"],
};
const RESUME = /^\/oauth\/authorize\/[A-Za-z0-9_-]+$/;

// The only paths under `/oauth` that a browser opens, so their errors are pages.
const PAGES = /^\/oauth\/authorize(\/|$)/;

/**
 * The last step before oidc-provider. Its router ignores case and trailing slashes, so other spellings of a path would get
 * responses that no other step limits or completes; and it has routes that this service doesn't use.
 */
export const onlyKnownPaths: Middleware = async function leaveKnownPaths({ path }, next) {
  const isKnown = Object.hasOwn(OAUTH_METHODS, path) || RESUME.test(path) || METADATA_PATHS.includes(path);
  if (isKnown) await next();
};

/** Responses may not be stored, unless a later step says so (RFC 6749 §5.1). */
export function requireOauthPath({ DYNAMIC_REGISTRATION, LEAK_REPORT_KEYS }: Settings): Middleware {
  const methodsByPath = { ...OAUTH_METHODS };
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

function isPreflight(ctx: Context): boolean {
  return (
    ctx.method === "OPTIONS" && ctx.get("origin") !== "" && isClientPath(ctx) && ctx.path !== LEAK_REPORT_PATH
  );
}

export function isOauthPath({ path }: Context): boolean {
  return /^\/oauth(\/|$)/i.test(path);
}

export function isRegistrationPath({ path }: Context): boolean {
  return path === REGISTRATION_PATH;
}

/** The request, its pages, and the return from them. */
export function isAuthorizationPath({ path }: Context): boolean {
  return path === "/oauth/authorize" || RESUME.test(path) || path.startsWith("/interaction/");
}

/** The endpoints, the keys and the metadata documents. */
export function isClientPath(ctx: Context): boolean {
  return (isOauthPath(ctx) || ctx.path.startsWith("/.well-known/")) && !PAGES.test(ctx.path);
}
