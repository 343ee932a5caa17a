import type { Context, Middleware } from "koa";
import { RESPONSE_HEADERS } from "./headers.ts";

const MAX_AGE_S = 3600;
const METHODS = "GET,HEAD,POST,PUT,PATCH,DELETE";
const EXPOSED = Object.keys(RESPONSE_HEADERS).join(",");

/** Allows cross-origin requests from these origins, without credentials: resources accept no cookies. */
export function allowOrigins(origins: ReadonlySet<string>): Middleware {
  return async function allowOrigin(ctx, next) {
    ctx.vary("Origin");
    const origin = ctx.get("Origin");
    if (!origins.has(origin)) return next();
    ctx.set("Access-Control-Allow-Origin", origin);
    if (ctx.method === "OPTIONS" && ctx.get("Access-Control-Request-Method")) {
      ctx.set("Access-Control-Allow-Methods", METHODS);
      return answerPreflight(ctx);
    }
    ctx.set("Access-Control-Expose-Headers", EXPOSED);
    return next();
  };
}

/** Lets every origin read, without credentials. The header is the same for all, so shared caches can store it. */
export const allowEveryOrigin: Middleware = async function allowAnyOrigin(ctx, next) {
  ctx.set("Access-Control-Allow-Origin", "*");
  if (ctx.method !== "OPTIONS") return next();
  answerPreflight(ctx);
};

function answerPreflight(ctx: Context): void {
  // MCP clients in a browser send MCP-Protocol-Version, which triggers a preflight request.
  const headers = ctx.get("Access-Control-Request-Headers");
  if (headers) ctx.set("Access-Control-Allow-Headers", headers);
  ctx.set("Access-Control-Max-Age", String(MAX_AGE_S));
  ctx.status = 204;
}
