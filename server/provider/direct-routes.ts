import type { Context, Middleware } from "koa";
import compose from "koa-compose";
import type { Provider } from "oidc-provider";
import { INTROSPECTION_STEPS, type ProviderInternals, runInContext, TOKEN_STEPS } from "./library-routes.ts";

const STATE = Symbol("the library's state of a request");
const IS_DIRECT = Symbol("served without the library's router");

type DirectContext = Context & { [STATE]?: object; [IS_DIRECT]?: true };

/**
 * Serves the token and introspection endpoints with the library's own steps, but without its router. The router defines
 * `oidc` on each context as a property with its own getter. V8 moves objects with such accessors to the old generation,
 * so each finished request, with all that it refers to, stays in memory until the next major collection: pauses of more
 * than 10 ms under load. Here the getter is on the prototype. Requests of browsers (with `Origin`) need the router's
 * CORS, and take its way.
 */
export function serveDirectly(provider: Provider): Middleware {
  const { context, OIDCContext } = provider as ProviderInternals;
  Object.defineProperty(context, "oidc", {
    configurable: true,
    get(this: DirectContext) {
      if (this[IS_DIRECT]) this[STATE] ??= new OIDCContext(this);
      return this[STATE];
    },
  });
  const routes = new Map([
    ["/oauth/token", { name: "token", run: compose(TOKEN_STEPS) }],
    ["/oauth/introspect", { name: "introspection", run: compose(INTROSPECTION_STEPS) }],
  ]);
  return function serveRoute(ctx: DirectContext, next) {
    const isDirect = ctx.method === "POST" && ctx.req.headers.origin === undefined;
    const route = isDirect ? routes.get(ctx.path) : undefined;
    if (!route) return next();
    ctx[IS_DIRECT] = true;
    ctx._matchedRoute = ctx.path;
    ctx._matchedRouteName = route.name;
    return runInContext(ctx, () => route.run(ctx, next));
  };
}
