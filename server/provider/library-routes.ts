import type { Middleware } from "koa";
import type { KoaContextWithOIDC, Provider } from "oidc-provider";

type Store = { run<T>(ctx: object, callback: () => T): T };

/** The library's own steps of a route, in order, without its router. */
type Steps = Middleware[];

// The library exports none of these, and has no option to serve a route without its router.
const folder: string = "oidc-provider/lib";
const [token, introspection, errorHandler, als] = await Promise.all([
  import(`${folder}/actions/token.js`) as Promise<{ default: Steps }>,
  import(`${folder}/actions/introspection.js`) as Promise<{ default: Steps }>,
  import(`${folder}/shared/error_handler.js`) as Promise<{ default(event: string): Middleware }>,
  import(`${folder}/helpers/als.js`) as Promise<{ default: Store }>,
]);

/** The steps of the token endpoint. */
export const TOKEN_STEPS: Steps = [errorHandler.default("grant.error"), ...token.default];

// The library's step that rejects JWTs.
const REJECT_JWTS = "rejectStructuredTokens";

/** The steps of the introspection endpoint. */
export const INTROSPECTION_STEPS: Steps = [
  errorHandler.default("introspection.error"),
  ...introspection.default.map((step) => (step.name === REJECT_JWTS ? onlyWithDot(step) : step)),
];

/**
 * Runs a step only for tokens with a dot, as every JWT has. The library tries to decode every token: for an opaque one,
 * that creates and drops an error with its stack, which takes a tenth of the time of the whole request.
 */
function onlyWithDot(step: Steps[number]): Steps[number] {
  return function rejectJwts(ctx, next) {
    const { oidc } = ctx as unknown as KoaContextWithOIDC;
    return String(oidc.params?.token).includes(".") ? step(ctx, next) : next();
  };
}

/** Runs a function during which `Provider.ctx` is this context. */
export function runInContext<T>(ctx: object, run: () => T): T {
  return als.default.run(ctx, run);
}

/** The parts of a provider that the library's types omit. */
export type ProviderInternals = Provider & {
  /** The prototype of every Koa context. */
  context: object;
  OIDCContext: new (ctx: object) => object;
};
