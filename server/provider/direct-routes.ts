import type { Context, Middleware } from "koa";
import compose from "koa-compose";
import type { Provider } from "oidc-provider";
import { INTROSPECTION_STEPS, type ProviderInternals, runInContext, TOKEN_STEPS } from "./library-routes.ts";

const STATE = Symbol("the library's state of a request");
const IS_DIRECT = Symbol("served without the library's router");

const TOKEN_PATH = "/oauth/token";
const INTROSPECTION_PATH = "/oauth/introspect";
const DIRECT_PATHS = new Set([TOKEN_PATH, INTROSPECTION_PATH]);

type DirectContext = Context & { [STATE]?: object; [IS_DIRECT]?: true };

/**
 * Returns whether a request is for the token or the introspection endpoint, and not from a browser: those (with `Origin`)
 * need the CORS of the library's router.
 */
export function isDirect({ method, path, req }: Context): boolean {
  return method === "POST" && DIRECT_PATHS.has(path) && req.headers.origin === undefined;
}

/**
 * Serves the requests that match `isDirect` with the library's own steps, but without its router. The router defines
 * `oidc` on each context as a property with its own getter. V8 moves objects with such accessors to the old generation,
 * so each finished request, with all that it refers to, stays in memory until the next major collection: pauses of more
 * than 10 ms under load. Here the getter is on the prototype.
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
  const routes = {
    [TOKEN_PATH]: { name: "token", run: compose(TOKEN_STEPS) },
    [INTROSPECTION_PATH]: { name: "introspection", run: compose(INTROSPECTION_STEPS) },
  };
  return function serveRoute(ctx: DirectContext, next) {
    const route = routes[ctx.path as keyof typeof routes];
    ctx[IS_DIRECT] = true;
    ctx._matchedRoute = ctx.path;
    ctx._matchedRouteName = route.name;
    return runInContext(ctx, () => route.run(ctx, next));
  };
}
