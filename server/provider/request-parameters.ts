import { errors, type Provider } from "oidc-provider";
import { canonicalRedirectUri } from "../clients/redirect-uris.ts";
import type { ClientAssertions } from "./client-assertions.ts";
import { canonicalResource } from "./resource-indicators.ts";

// An authorization request is stored while its user signs in. RFC 6749 sets no limits; what clients send is far
// smaller than these.
const MAX_STATE_BYTES = 2048;
const MAX_REQUEST_BYTES = 4096;
const AUTHORIZATION_ROUTES = new Set<string | undefined>(["authorization", "pushed_authorization_request"]);

// The library doesn't know this value, so it rejects it, and reports the error in the query.
const UNSUPPORTED = "unsupported";

// Not `max_age` and `id_token_hint`: they restrict who may sign in, so the library is right to reject them.
const IGNORED_WITHOUT_OPENID = ["nonce", "acr_values", "claims_locales"];

const PARAMS = Symbol("the normalized parameters");

type Params = Record<string, unknown>;
type Context = { route?: string; [PARAMS]?: Params };
// The library's types don't include the context class.
type Contexts = { OIDCContext: { prototype: object } };

/**
 * Normalizes the parameters of every request as soon as the library has parsed them. A request that is too large is
 * rejected before any of it is stored.
 */
export function normalizeParameters(provider: Provider, assertions: ClientAssertions): void {
  Object.defineProperty((provider as unknown as Contexts).OIDCContext.prototype, "params", {
    configurable: true,
    get(this: Context) {
      return this[PARAMS];
    },
    set(this: Context, all: Params) {
      const isAuthorization = AUTHORIZATION_ROUTES.has(this.route);
      const params = isAuthorization ? all : withoutMissing(all);
      if (isAuthorization) {
        checkSize(params);
        requireResponseType(params);
      }
      if (this.route === "pushed_authorization_request") rejectRequestUri(params);
      respondInQuery(params);
      if (isAuthorization || params.grant_type === "authorization_code") canonicalizeRedirectUri(params);
      canonicalizeResource(params);
      ignoreOpenIdParameters(params);
      assertions.setAside(params);
      this[PARAMS] = params;
    },
  });
}

/**
 * Returns the parameters that were sent. The library goes through all parameters several times, and deletes those that the
 * grant type doesn't have; most of the dozens that it knows are missing.
 */
function withoutMissing(all: Params): Params {
  const sent: Params = Object.create(Object.getPrototypeOf(all));
  for (const name in all) if (all[name] !== undefined) sent[name] = all[name];
  return sent;
}

/** @throws InvalidRequest naming the parameter and the limit */
function checkSize(params: Params): void {
  if (bytesOf(params.state) > MAX_STATE_BYTES) {
    throw new errors.InvalidRequest(`state must be at most ${MAX_STATE_BYTES} bytes`);
  }
  const total = Object.values(params).reduce<number>((sum, value) => sum + bytesOf(value), 0);
  if (total > MAX_REQUEST_BYTES) {
    throw new errors.InvalidRequest(`the parameters must be at most ${MAX_REQUEST_BYTES} bytes in total`);
  }
}

/** Returns the length of a parameter, or of all values of a repeated one. */
function bytesOf(value: unknown): number {
  return [value].flat().reduce<number>((sum, one) => sum + Buffer.byteLength(String(one ?? "")), 0);
}

/** Sends every response in the query: the library would report an unsupported response mode in that very mode. */
function respondInQuery(params: Params): void {
  const { response_mode: mode, response_type: type } = params;
  if (mode && mode !== "query") params.response_mode = Array.isArray(mode) ? mode : UNSUPPORTED;
  if (typeof type === "string" && type.includes("token")) params.response_type = UNSUPPORTED;
}

/** Lets the library say that `response_type` is missing. Without a response mode it would say that the mode is invalid. */
function requireResponseType(params: Params): void {
  if (params.response_type === undefined) params.response_mode ??= "query";
}

/** RFC 9126 §2.1: a pushed request must not contain a `request_uri`. @throws InvalidRequest */
function rejectRequestUri({ request_uri: uri }: Params): void {
  if (uri !== undefined) throw new errors.InvalidRequest("request_uri must not be part of a pushed request");
}

/**
 * The library compares the redirect URIs of the authorization and token requests as text, and sets a missing one to the
 * only one that the client has.
 */
function canonicalizeRedirectUri(params: Params): void {
  let canonical = canonicalRedirectUri(params.redirect_uri);
  Object.defineProperty(params, "redirect_uri", {
    enumerable: true,
    configurable: true,
    get: () => canonical,
    set(uri: unknown) {
      canonical = canonicalRedirectUri(uri);
    },
  });
}

/** The library compares resources as text between the authorization request, the token request and the refresh. */
function canonicalizeResource(params: Params): void {
  const { resource } = params;
  if (typeof resource === "string") params.resource = canonicalResource(resource);
  if (Array.isArray(resource)) params.resource = [...new Set(resource.map(canonicalResource))];
}

/** RFC 6749 §3.1: these parameters have no meaning without `openid`. Some clients always send a nonce. */
function ignoreOpenIdParameters(params: Params): void {
  const { scope } = params;
  if (typeof scope === "string" && scope.split(" ").includes("openid")) return;
  for (const name of IGNORED_WITHOUT_OPENID) {
    // A repeated parameter is rejected, whether or not it has a meaning.
    if (typeof params[name] === "string") params[name] = undefined;
  }
}
