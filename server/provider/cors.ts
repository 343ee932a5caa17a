import type { Middleware } from "koa";

/**
 * Only the listed browser origins may read the answers of the OAuth endpoints. The library allows any origin in a
 * preflight, where it cannot know the client yet, and refuses later. Keys and metadata stay readable by everybody; the
 * authorization endpoint is for navigation and has no CORS at all (RFC 9700 §2.6).
 */
export function oauthCors(origins: ReadonlySet<string>): Middleware {
  return async function restrictOrigins(ctx, next) {
    const origin = ctx.get("origin");
    // Without one nothing is asked, and the library allows nothing.
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
