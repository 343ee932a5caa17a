import cors from "@koa/cors";
import type { Middleware } from "koa";

const MAX_AGE_S = 3600;

/** Allows cross-origin requests from these origins, without credentials: resources accept no cookies. */
export function allowOrigins(origins: ReadonlySet<string>): Middleware {
  return cors({
    origin: (ctx) => (origins.has(ctx.get("origin")) ? ctx.get("origin") : ""),
    allowMethods: "GET,HEAD,POST,PUT,PATCH,DELETE",
    exposeHeaders:
      "ETag,Location,Retry-After,RateLimit,RateLimit-Policy,WWW-Authenticate,X-Request-Id,Idempotency-Replayed",
    maxAge: MAX_AGE_S,
  });
}
