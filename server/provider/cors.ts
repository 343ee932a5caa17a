import type { Middleware } from "koa";

/**
 * Lets only the listed browser origins read responses of the OAuth endpoints. The library allows every origin in a
 * preflight, where it can't know the client yet, and rejects the request later. Keys and metadata stay public. The
 * authorization endpoint is for navigation and has no CORS headers (RFC 9700 §2.6).
 */
export function oauthCors(origins: ReadonlySet<string>): Middleware {
  return async function restrictOrigins(ctx, next) {
    const origin = ctx.get("origin");
    // Without an origin the library sets no CORS headers.
    if ((!origin && ctx.method !== "OPTIONS") || ctx.path === "/oauth/jwks") return next();
    const isAllowed = origins.has(origin);
    if (ctx.method === "OPTIONS" && !isAllowed) {
      ctx.status = 204;
      return;
    }
    await next();
    if (isAllowed) return;
    for (const name of Object.keys(ctx.response.headers)) {
      if (name.toLowerCase().startsWith("access-control-")) ctx.remove(name);
    }
  };
}
