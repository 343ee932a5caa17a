import type { Router } from "@koa/router";
import type { Middleware } from "koa";
import compose from "koa-compose";
import type { ApiContext, ApiMiddleware } from "./api-context.ts";

/** A route without path parameters. */
export type ExactRoute = { path: string; run: compose.ComposedMiddleware<ApiContext> };
/** Finds the route of a request in one lookup. */
export type FindExactRoute = (method: string, path: string) => ExactRoute | undefined;

/**
 * Indexes the routes of a router without path parameters. Of routes that match the same path, the router's first one is
 * used. Call it after all routes are registered.
 */
export function indexExactRoutes(router: Router): FindExactRoute {
  const exact = new Map<string, ExactRoute>();
  for (const { path, methods, paramNames, stack } of router.stack) {
    if (typeof path !== "string" || paramNames.length > 0) continue;
    const run = compose(stack as unknown as ApiMiddleware[]);
    for (const method of methods) {
      const isOnly = router.match(path, method).pathAndMethod.length === 1;
      if (isOnly) exact.set(`${method} ${path}`, { path, run });
    }
  }
  return (method, path) => exact.get(`${method} ${path}`);
}

/** Serves the routes of a router: it tries all its routes in turn and composes their middleware anew for each request. */
export function serveRoutes(router: Router, findExact: FindExactRoute): Middleware {
  const serveOthers = router.routes() as unknown as Middleware;
  return function serveRoute(ctx, next) {
    const route = findExact(ctx.method, ctx.path);
    if (!route) return serveOthers(ctx, next);
    ctx.params = {};
    ctx._matchedRoute = route.path;
    return route.run(ctx, next);
  };
}
