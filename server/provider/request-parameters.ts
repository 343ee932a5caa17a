import { type ParsedUrlQuery, stringify } from "node:querystring";
import type { Middleware } from "koa";
import { errors, type KoaContextWithOIDC } from "oidc-provider";
import { canonicalRedirectUri } from "../clients/redirect-uris.ts";
import { seeOther } from "../http/redirects.ts";
import { formBody } from "../http/request-body.ts";
import { ENDPOINTS } from "../oauth-endpoints.ts";
import { canonicalResource } from "./resource-indicators.ts";

// A request is stored while its user signs in. RFC 6749 sets no limits; clients send far less than these.
const MAX_STATE_BYTES = 2048;
const MAX_REQUEST_BYTES = 4096;

// oidc-provider doesn't know this value, so it rejects it, and reports the error in the query.
const UNSUPPORTED = "unsupported";

// Not `max_age` and `id_token_hint`: they restrict who may sign in, so oidc-provider is right to reject them.
const IGNORED_WITHOUT_OPENID = ["nonce", "acr_values", "claims_locales"];

type Params = Record<string, unknown>;

/**
 * OpenID Connect Core §3.1.2.1. A form becomes a GET: a form on another site sends no session cookie, a redirect
 * does, and oidc-provider would require `SameSite=None` instead.
 */
export const normalizeAuthorizationRequest: Middleware = async function normalizeQuery(ctx, next) {
  if (ctx.path !== ENDPOINTS.authorization.path) return next();
  if (ctx.method !== "POST") {
    ctx.querystring = stringify(normalized({ ...ctx.query }) as ParsedUrlQuery);
    return next();
  }
  await formBody(ctx, async () => {});
  seeOther(ctx, `${ENDPOINTS.authorization.path}?${new URLSearchParams(String(ctx.request.rawBody ?? ""))}`);
};

export function normalizeAuthorizationParameters({ oidc }: KoaContextWithOIDC): void {
  normalized(oidc.params as Params);
}

export function normalizeTokenParameters({ oidc }: KoaContextWithOIDC): void {
  canonicalizeUris(oidc.params as Params);
}

/** oidc-provider goes through all parameters several times, and most of the dozens that it knows are missing. */
export function omitMissing({ oidc }: KoaContextWithOIDC): void {
  const all = oidc.params as Params;
  const sent: Params = Object.create(Object.getPrototypeOf(all));
  for (const name in all) if (all[name] !== undefined) sent[name] = all[name];
  Object.assign(oidc, { params: sent });
}

/** RFC 9126 §2.1. Throws InvalidRequest. */
export function rejectRequestUri({ oidc }: KoaContextWithOIDC): void {
  if (oidc.params?.request_uri === undefined) return;
  throw new errors.InvalidRequest("request_uri must not be part of a pushed request");
}

/** Throws InvalidRequest naming the parameter and the limit, before the request is stored. */
export function checkSize(ctx: KoaContextWithOIDC): void {
  const params = (ctx.method === "POST" ? ctx.oidc.body : ctx.query) as Params;
  if (bytesOf(params.state) > MAX_STATE_BYTES)
    throw new errors.InvalidRequest(`state must be at most ${MAX_STATE_BYTES} bytes`);
  const known = Object.keys(ctx.oidc.params as Params);
  const total = known.reduce((sum, name) => sum + bytesOf(params[name]), 0);
  if (total > MAX_REQUEST_BYTES)
    throw new errors.InvalidRequest(`the parameters must be at most ${MAX_REQUEST_BYTES} bytes in total`);
}

function bytesOf(value: unknown): number {
  return [value].flat().reduce<number>((sum, one) => sum + Buffer.byteLength(String(one ?? "")), 0);
}

function normalized(params: Params): Params {
  respondInQuery(params);
  canonicalizeUris(params);
  ignoreOpenIdParameters(params);
  return params;
}

/** oidc-provider would report an unsupported mode in that very mode, and a missing type as an invalid mode. */
function respondInQuery(params: Params): void {
  const { response_mode: mode, response_type: type } = params;
  if (!type) params.response_mode ||= "query";
  if (mode && mode !== "query") params.response_mode = Array.isArray(mode) ? mode : UNSUPPORTED;
  if (typeof type === "string" && type.includes("token")) params.response_type = UNSUPPORTED;
}

/** oidc-provider compares redirect URIs and resources as text between authorization, token request and refresh. */
function canonicalizeUris(params: Params): void {
  const { redirect_uri: redirectUri, resource } = params;
  if (redirectUri !== undefined) params.redirect_uri = canonicalRedirectUri(redirectUri);
  if (typeof resource === "string") params.resource = canonicalResource(resource);
  if (Array.isArray(resource)) params.resource = [...new Set(resource.map(canonicalResource))];
}

/** RFC 6749 §3.1: these parameters have no meaning without `openid`. Some clients always send a nonce. */
function ignoreOpenIdParameters(params: Params): void {
  const { scope } = params;
  if (typeof scope === "string" && scope.split(" ").includes("openid")) return;
  for (const name of IGNORED_WITHOUT_OPENID) {
    // A repeated parameter is rejected, whether or not it has a meaning.
    if (typeof params[name] === "string") delete params[name];
  }
}
