import type { Context, Middleware, Next } from "koa";
import compose from "koa-compose";
import { errors, type KoaContextWithOIDC, type Provider } from "oidc-provider";
import type { ActiveToken } from "../../resources/access/introspect.ts";
import { Problem } from "../../resources/http/problem.ts";
import { requireMethod } from "../../resources/http/routing.ts";
import { compressTexts } from "../http/compression.ts";
import {
  ENDPOINT_LIST,
  ENDPOINTS,
  type Endpoint,
  endpointsByPath,
  METADATA_PATHS,
  RESUME_PATH,
} from "../oauth-endpoints.ts";
import type { Settings } from "../settings/config.ts";
import type { AuthenticateByAssertion } from "./client-assertions.ts";
import { lacksKey } from "./dpop.ts";
import { requireRedirectUri } from "./fapi.ts";
import {
  normalizeAuthorizationParameters,
  normalizeTokenParameters,
  omitMissing,
  rejectRequestUri,
} from "./request-parameters.ts";
import { hasApiAccess, refuseClient } from "./require-api-access.ts";
import {
  arrange,
  omit,
  type ProviderInternals,
  respondWithErrors,
  runInContext,
  shareWithOrigins,
} from "./seams/endpoint-steps.ts";

const PAGES = ENDPOINT_LIST.filter(({ isPage }) => isPage).map(({ path }) => path);

/**
 * The last step before oidc-provider. Its router ignores case and trailing slashes, so other spellings of a path would get
 * responses that no other step limits or completes; and it has routes that this service doesn't use.
 */
export const onlyKnownPaths: Middleware = async function leaveKnownPaths({ path }, next) {
  const isKnown = endpointsByPath.has(path) || RESUME_PATH.test(path) || METADATA_PATHS.includes(path);
  if (isKnown) await next();
};

/** Responses may not be stored, unless a later step says so (RFC 6749 §5.1). */
export function requireOauthPath(settings: Settings): Middleware {
  const served = new Map([...endpointsByPath].filter(([, { isOn }]) => isOn?.(settings) ?? true));
  return function requireExactPath(ctx, next) {
    const endpoint = served.get(ctx.path);
    const isPublic = endpoint?.origins === "every";
    if (!isPublic) ctx.set("Cache-Control", "no-store");
    const methods = endpoint?.methods ?? (RESUME_PATH.test(ctx.path) ? ["GET", "HEAD"] : undefined);
    if (!methods) throw new Problem(404, "not_found", "There is no endpoint at this path.");
    const isPreflight = ctx.method === "OPTIONS" && ctx.get("origin") !== "" && endpoint?.origins;
    if (isPreflight) return next();
    const serve = () => requireMethod(ctx, methods, next);
    return isPublic ? compressTexts(ctx, serve) : serve();
  };
}

export function isOauthPath({ path }: Context): boolean {
  return /^\/oauth(\/|$)/i.test(path);
}

/** The request, its pages, and the return from them. */
export function isAuthorizationPath({ path }: Context): boolean {
  return path === ENDPOINTS.authorization.path || RESUME_PATH.test(path) || path.startsWith("/interaction/");
}

/** The endpoints, the keys and the metadata documents. */
export function isClientPath(ctx: Context): boolean {
  const isPage = PAGES.some((page) => ctx.path === page || ctx.path.startsWith(`${page}/`));
  return (isOauthPath(ctx) || ctx.path.startsWith("/.well-known/")) && !isPage;
}

type StoredToken = { active?: ActiveToken };
type EndpointContext = Context & KoaContextWithOIDC & { authenticateByAssertion: AuthenticateByAssertion };

const clientAuthentication = [
  "rejectClientAuthDupes",
  "setWWWAuthenticateHeader",
  { name: "authenticateClient", wrap: unlessByAssertion },
];

/** RFC 6749 §3.2. A string names steps of oidc-provider. */
export const TOKEN_STEPS = [
  respondWithErrors("grant.error"),
  ...arrange("token", [
    "noCache, urlencoded, assembleTokenParams",
    step(omitMissing),
    step(normalizeTokenParameters),
    ...clientAuthentication,
    "bound rejectDupes, stripGrantIrrelevantParams, supportedGrantTypeCheck, allowedGrantTypeCheck",
    "rejectDupesOptionalExcept, validateScope, checkRar, ensureRarResource, callTokenHandler",
  ]),
];

/** RFC 7662 §2. */
const INTROSPECTION_STEPS = [
  respondWithErrors("introspection.error"),
  ...arrange("introspection", [
    "noCache, urlencoded, assembleTokenParams",
    step(omitMissing),
    step(requireCredentials),
    ...clientAuthentication,
    step(refusePublicClients),
    "bound rejectDupes, validateTokenPresence",
    { name: "rejectStructuredTokens", wrap: omit },
    "jwtIntrospectionResponse, renderTokenResponse",
  ]),
];

/** RFC 7009 §2. */
const REVOCATION_STEPS = [
  respondWithErrors("revocation.error"),
  ...arrange("revocation", [
    "urlencoded, assembleTokenParams",
    step(omitMissing),
    ...clientAuthentication,
    "bound rejectDupes, validateTokenPresence",
    { name: "rejectStructuredTokens", wrap: omit },
    "renderTokenResponse, revokeToken",
  ]),
];

/** RFC 9126 §2. */
const PUSHED_REQUEST_STEPS = [
  respondWithErrors("pushed_authorization_request.error"),
  ...arrange("pushed_authorization_request", [
    "noCache, urlencoded, assembleClientAuthParams",
    ...clientAuthentication,
    "assembleAuthorizationParams",
    step(rejectRequestUri),
    step(normalizeAuthorizationParameters),
    step(requireRedirectUri),
    "rejectAuthorizationDupes, rejectUnsupported, stripOutsideJarParams, requestObjectRemapErrors",
    "processRequestObject, checkResponseMode, oneRedirectUriClients, oauthRequired, rejectRegistration",
    "checkResponseType, oidcRequired, checkPrompt, checkScope, checkOpenIdScope, checkRedirectUri",
    "checkPKCE, checkClaims, checkRar, checkResource, checkMaxAge, checkIdTokenHint, checkDpopJkt",
    "checkExtraParams, pushedAuthorizationRequestResponse",
  ]),
];

/** RFC 8628 §3.1. */
const DEVICE_STEPS = [
  respondWithErrors("device_authorization.error"),
  ...arrange("device_authorization", [
    "noCache, urlencoded, assembleClientAuthParams",
    ...clientAuthentication,
    "deviceAuthorizationResponse, assembleAuthorizationParams",
    step(normalizeAuthorizationParameters),
    "rejectAuthorizationDupes, rejectUnsupported, checkClient, checkClientGrantType, processRequestObject",
    "rejectRegistration, assignDefaults, checkScope, checkOpenIdScope, checkClaims, checkRar, checkResource",
    "checkMaxAge, checkIdTokenHint, checkExtraParams, deviceAuthorizationResponse",
  ]),
];

/** OpenID Connect Core §5.3. */
const USERINFO_STEPS = [
  respondWithErrors("userinfo.error"),
  ...arrange("userinfo", [
    "noCache, setWWWAuthenticateHeader, urlencoded, bound assembleParams, bound rejectDupes",
    requireActiveToken,
    "validateAccessToken",
    // All of our tokens have an audience, with which oidc-provider refuses them here.
    { name: "validateAudience", wrap: omit },
    "validateScope, loadAccessTokenClient, loadAccessTokenAccount, loadAccessTokenGrant, respond",
  ]),
];

const SERVED = new Map([
  endpoint("token", TOKEN_STEPS),
  endpoint("introspection", INTROSPECTION_STEPS),
  endpoint("revocation", REVOCATION_STEPS),
  endpoint("pushed_authorization_request", PUSHED_REQUEST_STEPS),
  endpoint("device_authorization", DEVICE_STEPS),
  endpoint("userinfo", USERINFO_STEPS),
]);

function endpoint(name: keyof typeof ENDPOINTS, [handleErrors, ...steps]: Middleware[]) {
  const { path, acceptsDpop }: Endpoint = ENDPOINTS[name];
  const share = shareWithOrigins(acceptsDpop ? ["DPoP-Nonce", "WWW-Authenticate"] : ["WWW-Authenticate"]);
  return [path, { name, run: compose([handleErrors as Middleware, share, ...steps]) }] as const;
}

/** Preflights and other methods are left to oidc-provider. */
export function serveEndpoints(provider: Provider): Middleware {
  const { OIDCContext } = provider as ProviderInternals;
  return function serveEndpoint(ctx, next) {
    const found = SERVED.get(ctx.path);
    if (!found || ctx.method === "OPTIONS") return next();
    ctx._matchedRoute = ctx.path;
    ctx._matchedRouteName = found.name;
    Object.defineProperty(ctx, "oidc", { value: new OIDCContext(ctx) });
    return runInContext(ctx, () => found.run(ctx, next));
  };
}

function step(change: (ctx: KoaContextWithOIDC) => void): Middleware {
  return function changeParameters(ctx, next) {
    change(ctx as Context & KoaContextWithOIDC);
    return next();
  };
}

/** oidc-provider authenticates the client of a request without an assertion. */
function unlessByAssertion(authenticateClient: Middleware): Middleware {
  return async function authenticate(context: Context, next) {
    const ctx = context as EndpointContext;
    if (await ctx.authenticateByAssertion(ctx)) return next();
    try {
      await authenticateClient(ctx, async () => {});
    } catch (error) {
      throw explainMissingCredentials(error, ctx);
    }
    return next();
  };
}

/** Some clients use `none` if the metadata lists it, even with a secret. Unknown clients get the same description. */
function explainMissingCredentials(error: unknown, ctx: EndpointContext): unknown {
  const { client_secret: secret, client_assertion: assertion } = ctx.oidc.params ?? {};
  const hasCredentials = secret !== undefined || assertion !== undefined || ctx.get("authorization") !== "";
  if (error instanceof errors.InvalidClientAuth && !hasCredentials)
    error.error_description =
      "client authentication failed: confidential clients must use client_secret_basic, client_secret_post or private_key_jwt";
  return error;
}

/** RFC 7662 §2.1 and §2.3, RFC 6749 §5.2: 401, where oidc-provider responds 400. Throws InvalidClientAuth. */
function requireCredentials(ctx: KoaContextWithOIDC): void {
  const { client_id: id, client_secret: secret, client_assertion: assertion } = ctx.oidc.params ?? {};
  if (id || secret || assertion || ctx.get("authorization")) return;
  ctx.set("WWW-Authenticate", `Basic realm="${ctx.oidc.provider.issuer}"`);
  refuseClient("no credentials were sent");
}

/** RFC 7662 §2.1: introspection requires authorization, which a public client cannot prove. */
function refusePublicClients({ oidc }: KoaContextWithOIDC): void {
  if (oidc.client?.tokenEndpointAuthMethod === "none")
    refuseClient("public clients cannot introspect tokens");
}

/** Throws InvalidToken or InsufficientScope. */
async function requireActiveToken(ctx: Context, next: Next): Promise<void> {
  const { oidc } = ctx as Context & KoaContextWithOIDC;
  const { AccessToken, ClientCredentials } = oidc.provider;
  const value = oidc.getAccessToken({ acceptDPoP: true });
  const ofUser = await AccessToken.find(value);
  const { active } = ((ofUser ?? (await ClientCredentials.find(value))) as StoredToken | undefined) ?? {};
  if (!active || !hasApiAccess(active) || lacksKey(active))
    throw new errors.InvalidToken("token is inactive");
  if (!ofUser) throw new errors.InsufficientScope("the token has no user", "openid");
  return next();
}
