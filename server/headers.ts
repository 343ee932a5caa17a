import { randomUUID } from "node:crypto";
import type { Middleware } from "koa";

const HSTS = "max-age=63072000; includeSubDomains"; // two years

/** Pages run nothing and load nothing but our own style sheet. `formTargets` is where a form may lead in the end. */
export function contentSecurityPolicy(formTargets: string[] = []): string {
  return [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    // Explicit, so that the library can add the hash of the one script that it needs.
    "script-src 'self'",
    ["form-action 'self'", ...formTargets].join(" "),
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "object-src 'none'",
  ].join("; ");
}

const PAGE_POLICY = contentSecurityPolicy();

/** What every answer carries, whoever makes it; a request id, which the log knows as well. */
export function commonHeaders({ secure }: { secure: boolean }): Middleware {
  const headers = Object.entries({
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": PAGE_POLICY,
    ...(secure && { "Strict-Transport-Security": HSTS }),
  });
  return function setCommonHeaders(ctx, next) {
    const id = randomUUID();
    ctx.state.requestId = id;
    ctx.res.setHeader("X-Request-Id", id);
    for (const [name, value] of headers) ctx.res.setHeader(name, value);
    return next();
  };
}
