import type { Middleware } from "koa";
import bodyParser from "koa-bodyparser";

/**
 * Makes the library respond with JSON (RFC 6749 §5.2) even to clients that accept `text/html`, such as Java's
 * `HttpURLConnection`. Replaces the header because the library negotiates by itself.
 */
export const acceptJson: Middleware = function replaceAcceptHeader({ req }, next) {
  req.headers.accept = "application/json";
  return next();
};

const parseForm = bodyParser({ enableTypes: ["form"], formLimit: "16kb" });

/**
 * Turns an authorization request sent as a form (OpenID Connect Core §3.1.2.1) into a GET. A form on another site sends
 * no session cookie, a redirect does; the library would require `SameSite=None` instead.
 */
export const redirectAuthorizationForm: Middleware = async function redirectFormToQuery(ctx, next) {
  if (ctx.path !== "/oauth/authorize" || ctx.method !== "POST") return next();
  await parseForm(ctx, async () => {});
  ctx.status = 303;
  ctx.redirect(`/oauth/authorize?${new URLSearchParams(String(ctx.request.rawBody ?? ""))}`);
};
