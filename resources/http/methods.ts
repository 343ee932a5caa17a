import type { Router } from "@koa/router";
import type { Context, Middleware, Next } from "koa";
import type { ApiContext } from "./api-context.ts";
import { Problem } from "./problem.ts";

/**
 * Runs the next step for these methods. Answers OPTIONS, and rejects other methods with 405 and `Allow` (RFC 9110
 * §15.5.6).
 */
export async function requireMethod(
  ctx: Pick<ApiContext, "method" | "status" | "set">,
  methods: readonly string[],
  next: Next,
): Promise<void> {
  if (methods.includes(ctx.method)) return next();
  const allow = [...new Set([...methods, "OPTIONS"])].join(", ");
  if (ctx.method !== "OPTIONS") {
    throw new Problem(405, "method_not_allowed", `Allowed methods: ${allow}.`, { headers: { Allow: allow } });
  }
  ctx.status = 204;
  ctx.set("Allow", allow);
}

/** Serves resources that can only be read. */
export const requireRead: Middleware = function requireReadMethod(ctx, next) {
  return requireMethod(ctx, ["GET", "HEAD"], next);
};

/** Serves the routes of a router, and answers requests for their paths with other methods. */
export function routesOf(router: Router): Middleware[] {
  return [router.routes() as unknown as Middleware, rejectOtherMethods(router)];
}

/** Answers requests for the paths of a router with other methods. */
export function rejectOtherMethods(router: Router): Middleware {
  return async function checkMethod(ctx: Context, next) {
    const methods = router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods);
    return methods.length === 0 ? next() : requireMethod(ctx, methods, next);
  };
}
