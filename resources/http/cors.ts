import cors from "@koa/cors";
import type { Middleware } from "koa";

const MAX_AGE_S = 3600;

/** Lets the listed browser origins read the answers; never with cookies, which open nothing here. */
export function allowOrigins(origins: ReadonlySet<string>): Middleware {
  return cors({
    origin: (ctx) => (origins.has(ctx.get("origin")) ? ctx.get("origin") : ""),
    allowMethods: "GET,HEAD,POST,PUT,PATCH,DELETE",
    exposeHeaders:
      "ETag,Location,Retry-After,RateLimit,RateLimit-Policy,WWW-Authenticate,X-Request-Id,Idempotency-Replayed",
    maxAge: MAX_AGE_S,
  });
}
