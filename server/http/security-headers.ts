import { randomUUID } from "node:crypto";
import type { Context, Middleware } from "koa";
import { EMBEDDED_STYLE } from "../ui/page.ts";

const HSTS = "max-age=63072000; includeSubDomains"; // two years

const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  // Explicit, so that oidc-provider can add the hash of the script that it needs.
  "script-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "object-src 'none'",
].join("; ");
const PAGE_POLICY = `${POLICY}; form-action 'self'; connect-src 'self'`;

// Chromium applies `form-action` to every redirect that follows a form. Consent redirects to the app, whose callback may
// redirect to any origin or private scheme. These pages escape every value, so they cannot contain a foreign form.
const AUTHORIZATION_FORMS = /^\/interaction\//;
// Apps may open an authorization in a popup. `same-origin` would disconnect it from its opener, even on a redirect.
const AUTHORIZATION_STEPS = /^\/(oauth\/authorize|interaction|auth\/sso)(\/|$)/;

/** Lets a form of this page lead to any origin by a redirect. The page must escape every value, as those above. */
export function allowFormRedirects(ctx: Context): void {
  ctx.set("Content-Security-Policy", POLICY);
}

/** For hosts that don't serve the style sheet. */
export const STANDALONE_POLICY = `default-src 'none'; style-src ${EMBEDDED_STYLE}; frame-ancestors 'none'; base-uri 'none'`;

/** Those of a domain's pages, which load nothing. Whether a browser may use http there is its owner's choice. */
export const domainHeaders: Middleware = function setDomainHeaders(ctx, next) {
  setRequestId(ctx);
  ctx.set({
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": STANDALONE_POLICY,
  });
  return next();
};

/** The log contains the request ID, too. */
function setRequestId(ctx: Context): void {
  const id = randomUUID();
  ctx.state.requestId = id;
  ctx.set("X-Request-Id", id);
}

export function commonHeaders(secure: boolean): Middleware {
  const headers = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": PAGE_POLICY,
    ...(secure && { "Strict-Transport-Security": HSTS }),
  };
  return function setCommonHeaders(ctx, next) {
    setRequestId(ctx);
    ctx.set(headers);
    if (AUTHORIZATION_FORMS.test(ctx.path)) allowFormRedirects(ctx);
    if (AUTHORIZATION_STEPS.test(ctx.path)) ctx.set("Cross-Origin-Opener-Policy", "unsafe-none");
    return next();
  };
}
