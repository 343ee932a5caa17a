import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from "jose";
import { LRUCache } from "lru-cache";
import { FetchFailed, type GuardedFetch } from "../../resources/outbound/guarded-fetch.ts";
import { InvalidJwt } from "./verify-jwt.ts";

// Bounds the memory: a set takes a few kilobytes.
const MAX_SETS = 1000;
const DISCOVERY_TTL_MS = 60 * 60 * 1000;
// Limits how long revoked keys are accepted. The cooldown prevents a flood of requests for invented key ids.
const KEYS_TTL_MS = 10 * 60 * 1000;
const COOLDOWN_MS = 30_000;

export type KeySets = ReturnType<typeof createKeySets>;

export function createKeySets(fetch: GuardedFetch) {
  const sets = new LRUCache<string, JWTVerifyGetKey>({
    max: MAX_SETS,
    memoMethod: (jwksUri) => {
      const remote = createRemoteJWKSet(new URL(jwksUri), {
        [customFetch]: (url) => fetch(url),
        cacheMaxAge: KEYS_TTL_MS,
        cooldownDuration: COOLDOWN_MS,
      });
      return (header, token) => remote(header, token).catch(rethrow);
    },
  });
  // A failure is not kept: the next token tries again.
  const discovered = new LRUCache<string, string>({
    max: MAX_SETS,
    ttl: DISCOVERY_TTL_MS,
    fetchMethod: (issuer) => discoverJwksUri(fetch, issuer),
    ignoreFetchAbort: true,
  });

  return {
    /** RFC 7517 §5: fetched when first needed. */
    at: (jwksUri: string): JWTVerifyGetKey => sets.memo(jwksUri),
    /** OpenID Connect Discovery §4. Throws InvalidJwt if the keys can't be found. */
    ofIssuer: async (issuer: string): Promise<JWTVerifyGetKey> =>
      sets.memo(await discovered.forceFetch(issuer)),
  };
}

async function discoverJwksUri(fetch: GuardedFetch, issuer: string): Promise<string> {
  // OpenID Connect Discovery §4.1: a trailing slash of the issuer is removed before the path is added.
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const document = await readJson(fetch, url);
  // §4.3: otherwise any host could present another issuer's keys.
  if (document.issuer !== issuer) throw new InvalidJwt("the metadata of the issuer names another issuer");
  if (typeof document.jwks_uri !== "string" || !URL.canParse(document.jwks_uri))
    throw new InvalidJwt("the metadata of the issuer has no jwks_uri");
  return document.jwks_uri;
}

async function readJson(fetch: GuardedFetch, url: string): Promise<Record<string, unknown>> {
  try {
    const response = await fetch(url);
    const document: unknown = response.status === 200 ? await response.json() : undefined;
    if (typeof document === "object" && document !== null) return document as Record<string, unknown>;
  } catch (error) {
    if (!(error instanceof FetchFailed) && !(error instanceof SyntaxError)) throw error;
  }
  throw new InvalidJwt("the metadata of the issuer could not be fetched");
}

/** Keys that can't be fetched make the token invalid; errors about the choice of the key stay as they are. */
function rethrow(error: unknown): never {
  const isChoice =
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported;
  throw isChoice ? error : new InvalidJwt("the keys of the issuer could not be fetched");
}
