import type { Middleware } from "koa";
import type { Provider } from "oidc-provider";

/**
 * Seam: the steps of six endpoints are taken out of oidc-provider and run with ours between them, without its router.
 * No option: a client can't be authenticated by anything but oidc-provider's own methods, userinfo refuses every token
 * with an audience, and nothing runs between two steps.
 * Upstream would have to offer: custom client authentication methods, and endpoints as exported middleware.
 */

type Steps = Middleware[];
type Store = { run<T>(ctx: object, callback: () => T): T };

async function load<T>(file: string): Promise<T> {
  return ((await import(`oidc-provider/lib/${file}`)) as { default: T }).default;
}

const authorization = await load<(endpoint: string) => Steps>("actions/authorization/index.js");
const cors = await load<(options: object) => Middleware>("shared/cors.js");
const als = await load<Store>("helpers/als.js");

/** The steps of oidc-provider's endpoints, by the name of their route. */
export const UPSTREAM = {
  token: await load<Steps>("actions/token.js"),
  introspection: await load<Steps>("actions/introspection.js"),
  revocation: await load<Steps>("actions/revocation.js"),
  userinfo: await load<Steps>("actions/userinfo.js"),
  pushed_authorization_request: authorization("pushed_authorization_request"),
  device_authorization: authorization("device_authorization"),
};

/** Responds with the errors of the following steps, and emits them as this event. */
export const respondWithErrors = await load<(event: string) => Middleware>("shared/error_handler.js");

/** Lets the origins of `clientBasedCORS` read the response, unless it is to a preflight. */
export function shareWithOrigins(exposeHeaders: string[]): Middleware {
  return cors({ clientBased: true, exposeHeaders });
}

/** Takes the place of a step that isn't run. */
export const omit = (): Middleware => (_ctx, next) => next();

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
export const runInContext: Store["run"] = als.run.bind(als);

/** The part of a provider that its types omit. */
export type ProviderInternals = Provider & { OIDCContext: new (ctx: object) => object };
