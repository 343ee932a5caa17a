import { randomUUID } from "node:crypto";
import type { Middleware } from "koa";

const HSTS = "max-age=63072000; includeSubDomains"; // two years

const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "img-src 'self'",
  // Explicit, so that oidc-provider can add the hash of the script that it needs.
  "script-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "object-src 'none'",
].join("; ");
const PAGE_POLICY = `${POLICY}; form-action 'self'`;

// Chromium applies `form-action` to every redirect that follows a form. Consent redirects to the app, whose callback may
// redirect to any origin or private scheme. These pages escape every value, so they cannot contain a foreign form.
const AUTHORIZATION_FORMS = /^\/interaction\//;
// Apps may open an authorization in a popup. `same-origin` would disconnect it from its opener, even on a redirect.
const AUTHORIZATION_STEPS = /^\/(oauth\/authorize|interaction|auth\/sso)(\/|$)/;

/** The names and values of the security headers of every response. @param secure whether the service is on https */
export function securityHeaders(secure: boolean): [name: string, value: string][] {
  return Object.entries({
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": PAGE_POLICY,
    ...(secure && { "Strict-Transport-Security": HSTS }),
  });
}

/** Sets the security headers of every response and the request ID, which the log contains as well. */
export function commonHeaders({ secure }: { secure: boolean }): Middleware {
  const headers = securityHeaders(secure);
  return function setCommonHeaders(ctx, next) {
    const id = randomUUID();
    ctx.state.requestId = id;
    ctx.res.setHeader("X-Request-Id", id);
    for (const [name, value] of headers) ctx.res.setHeader(name, value);
    if (AUTHORIZATION_FORMS.test(ctx.path)) ctx.res.setHeader("Content-Security-Policy", POLICY);
    if (AUTHORIZATION_STEPS.test(ctx.path)) ctx.res.setHeader("Cross-Origin-Opener-Policy", "unsafe-none");
    return next();
  };
}
