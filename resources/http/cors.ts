import cors from "@koa/cors";
import type { Middleware } from "koa";

const MAX_AGE_S = 3600;

/** Allows cross-origin requests from these origins, without credentials: resources accept no cookies. */
export function allowOrigins(origins: ReadonlySet<string>): Middleware {
  return cors({
    origin: (ctx) => (origins.has(ctx.get("origin")) ? ctx.get("origin") : ""),
    allowMethods: "GET,HEAD,POST,PUT,PATCH,DELETE",
    exposeHeaders:
      "ETag,Location,Retry-After,RateLimit,RateLimit-Policy,WWW-Authenticate,DPoP-Nonce,X-Request-Id,Idempotency-Replayed",
    maxAge: MAX_AGE_S,
  });
}

/** Lets every origin read, without credentials. The header is the same for all, so shared caches can store it. */
export const allowEveryOrigin: Middleware = function allowAnyOrigin(ctx, next) {
  ctx.set("Access-Control-Allow-Origin", "*");
  if (ctx.method !== "OPTIONS") return next();
  // MCP clients in a browser send MCP-Protocol-Version, which triggers a preflight request.
  const headers = ctx.get("access-control-request-headers");
  if (headers) ctx.set("Access-Control-Allow-Headers", headers);
  ctx.set("Access-Control-Max-Age", String(MAX_AGE_S));
  ctx.status = 204;
  return Promise.resolve();
};
