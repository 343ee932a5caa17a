import type { Context, Middleware } from "koa";
import bodyParser from "koa-bodyparser";

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
export const oauthPaths: Middleware = function checkOauthPath(ctx, next) {
  const methods = METHODS[ctx.path] ?? (RESUME.test(ctx.path) ? ["GET"] : undefined);
  if (!methods) {
    ctx.status = 404;
    ctx.body = { error: "not_found", error_description: "there is no such address" };
    return Promise.resolve();
  }
  if (methods.includes(ctx.method)) return next();
  ctx.status = 405;
  ctx.set("Allow", methods.join(", "));
  ctx.body = { error: "invalid_request", error_description: `use ${methods.join(" or ")}` };
  return Promise.resolve();
};

/** Whether an address is under `/oauth`, however it is written. */
export function isOauthPath({ path }: Context): boolean {
  return /^\/oauth(\/|$)/i.test(path);
}

/** Whether an address belongs to an authorization: its request, its pages, and the way back from them. */
export function isAuthorization({ path }: Context): boolean {
  return path === "/oauth/authorize" || RESUME.test(path) || path.startsWith("/interaction/");
}

// The only addresses under `/oauth` that a browser opens, and shows errors of.
const PAGES = /^\/oauth\/(authorize(\/|$)|session\/end\/confirm$)/;

/** Returns whether only programs call an address: the endpoints, the keys and the metadata documents. */
export function isForPrograms(ctx: Context): boolean {
  return (isOauthPath(ctx) || ctx.path.startsWith("/.well-known/")) && !PAGES.test(ctx.path);
}

/**
 * RFC 6749 §5.2: errors are JSON, and a client need not ask for that. Java's `HttpURLConnection`, for one, asks for
 * `text/html`. The header is replaced because the library negotiates on its own.
 */
export const answerInJson: Middleware = function acceptJson({ req }, next) {
  req.headers.accept = "application/json";
  return next();
};

const form = bodyParser({ enableTypes: ["form"], formLimit: "16kb" });

/**
 * OpenID Connect Core §3.1.2.1: an authorization request may be a form. It goes on as a GET, so that the session
 * cookie, which a form of another site does not carry, is seen (the library would want `SameSite=None` instead).
 */
export const authorizeByForm: Middleware = async function redirectAuthorizationForm(ctx, next) {
  if (ctx.path !== "/oauth/authorize" || ctx.method !== "POST") return next();
  await form(ctx, async () => {});
  ctx.status = 303;
  ctx.redirect(`/oauth/authorize?${new URLSearchParams(String(ctx.request.rawBody ?? ""))}`);
};
