import type { Middleware } from "koa";
import type { Provider } from "oidc-provider";

/**
 * Seam: the steps of five endpoints are taken out of oidc-provider and run with ours between them, without its router.
 * No option: a client can't be authenticated by anything but oidc-provider's own methods, userinfo refuses every token
 * with an audience, and nothing runs between two steps.
 * Upstream would have to offer: custom client authentication methods, and endpoints as exported middleware.
 */

type Steps = Middleware[];
type Store = { run<T>(ctx: object, callback: () => T): T };

const folder: string = "oidc-provider/lib";
const [token, introspection, revocation, userinfo, authorization, errorHandler, cors, als] =
  await Promise.all([
    import(`${folder}/actions/token.js`) as Promise<{ default: Steps }>,
    import(`${folder}/actions/introspection.js`) as Promise<{ default: Steps }>,
    import(`${folder}/actions/revocation.js`) as Promise<{ default: Steps }>,
    import(`${folder}/actions/userinfo.js`) as Promise<{ default: Steps }>,
    import(`${folder}/actions/authorization/index.js`) as Promise<{ default(endpoint: string): Steps }>,
    import(`${folder}/shared/error_handler.js`) as Promise<{ default(event: string): Middleware }>,
    import(`${folder}/shared/cors.js`) as Promise<{ default(options: object): Middleware }>,
    import(`${folder}/helpers/als.js`) as Promise<{ default: Store }>,
  ]);

/** The steps of oidc-provider's endpoints, by the name of their route. */
export const UPSTREAM = {
  token: token.default,
  introspection: introspection.default,
  revocation: revocation.default,
  userinfo: userinfo.default,
  pushed_authorization_request: authorization.default("pushed_authorization_request"),
};

/** Responds with the errors of the following steps, and emits them as this event. */
export const respondWithErrors = errorHandler.default;

/** Lets the origins of `clientBasedCORS` read the response. */
export function shareWithOrigins(allowMethods: string[], exposeHeaders: string[]): Middleware {
  return cors.default({ allowMethods, clientBased: true, maxAge: 3600, exposeHeaders });
}

/** Steps of oidc-provider by their names, one of them that is wrapped, or a step of ours. */
type Step = string | { name: string; wrap(step: Middleware): Middleware } | Middleware;

/**
 * Returns the steps of an endpoint.
 * @throws TypeError if oidc-provider's are not exactly the named ones, in this order
 */
export function arrange(endpoint: keyof typeof UPSTREAM, steps: Step[]): Steps {
  const upstream = [...UPSTREAM[endpoint]];
  function take(name: string): Middleware {
    const found = upstream.shift();
    if (found?.name === name) return found;
    throw new TypeError(
      `oidc-provider's ${endpoint} endpoint has the step ${found?.name} instead of ${name}`,
    );
  }
  const arranged = steps.flatMap((step) => {
    if (typeof step === "string") return step.split(", ").map(take);
    return typeof step === "function" ? step : step.wrap(take(step.name));
  });
  if (upstream.length > 0) throw new TypeError(`oidc-provider's ${endpoint} endpoint has more steps`);
  return arranged;
}

/** Runs a function during which `Provider.ctx` is this context. */
export function runInContext<T>(ctx: object, run: () => T): T {
  return als.default.run(ctx, run);
}

/** The parts of a provider that its types omit. */
export type ProviderInternals = Provider & {
  /** The prototype of every Koa context. */
  context: object;
  OIDCContext: new (ctx: object) => object;
};
