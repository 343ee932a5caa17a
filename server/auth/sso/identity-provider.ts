import { setTimeout as sleep } from "node:timers/promises";
import * as oidc from "openid-client";
import { type TraceOutgoing, untraced } from "../../../resources/outbound/guarded-fetch.ts";
import { CLOCK_SKEW_S } from "../../assertions/verify-jwt.ts";
import type { Settings } from "../../settings/config.ts";
import type { SsoOption } from "../../ui/sign-in.ts";

// The largest documents of identity providers, with dozens of keys, stay below this.
const MAX_BYTES = 256 * 1024;

/** Throws a TypeError like `fetch` if a response is too large. */
const fetchBounded: oidc.CustomFetch = async (url, options) => {
  const response = await fetch(url, options as RequestInit);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    // Leaving the loop closes the connection.
    if (bytes > MAX_BYTES)
      throw new TypeError("fetch failed", {
        cause: new Error(`the response is larger than ${MAX_BYTES} bytes`),
      });
    chunks.push(chunk);
  }
  const { status, headers } = response;
  return new Response(chunks.length > 0 ? Buffer.concat(chunks) : null, { status, headers });
};

/** Identified by `issuer` and `subject` together. */
export type Identity = {
  issuer: string;
  subject: string;
  /** Candidates for the username, best first. They aren't unique and prove nothing. */
  names: string[];
  /** In epoch seconds, if the provider says so. */
  authenticatedAt?: number;
  /** RFC 8176, if the provider says so. */
  amr?: string[];
};

/** Stored in the browser that started the sign-in. */
export type TransactionSecrets = { state: string; nonce: string; verifier: string; maxAge?: number };

export class ProviderUnavailable extends Error {
  override readonly name = "ProviderUnavailable";
}

const TIMEOUT_S = 5;
const REACHABLE_WITHIN_MS = 1000;
const CACHE_MS = 3600_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
// RFC 8176 §2: values are short words.
const AMR_VALUE = /^[\w.:/-]{1,64}$/;
// OpenID Connect Core §2: at most 255 ASCII characters.
const SUBJECT = /^[\x20-\x7e]{1,255}$/;

export type IdentityProvider = NonNullable<ReturnType<typeof createIdentityProvider>>;

/** `onError` receives the reasons why the provider can't be reached. */
export function createIdentityProvider(
  settings: Settings,
  redirectUri: string,
  onError: (error: unknown) => void,
  trace: TraceOutgoing = untraced,
) {
  const { IDP_ISSUER, IDP_CLIENT_ID: clientId, IDP_CLIENT_SECRET: secret, IDP_NAME: name } = settings;
  if (!IDP_ISSUER || !clientId || !secret || !name) return undefined;
  const fetch: oidc.CustomFetch = (url, options) =>
    trace({ method: options.method, url }, (traceHeaders) =>
      fetchBounded(url, { ...options, headers: { ...options.headers, ...traceHeaders } }),
    );
  const { configuration, isKnown } = cacheDiscovery(
    () => discover(IDP_ISSUER, { clientId, secret, fetch }),
    onError,
  );

  // What sign-in pages show while an attempt takes long.
  let wasReachable = true;
  let isSlow = false;

  return {
    name,

    /**
     * Waits at most a second for a provider that didn't respond yet, and only once if it hangs. Until it responds,
     * returns what was known last.
     */
    async isReachable(): Promise<boolean> {
      if (isKnown()) return true;
      const attempt = configuration()
        .then(
          () => true,
          () => false,
        )
        .then((isReachable) => (wasReachable = isReachable));
      const late = sleep(isSlow ? 0 : REACHABLE_WITHIN_MS, undefined, { ref: false });
      const isReachable = await Promise.race([attempt, late]);
      if (isReachable === undefined) isSlow = true;
      return isReachable ?? wasReachable;
    },

    /** With `maxAge`, in seconds, the user has to authenticate again. */
    async begin(maxAge?: number) {
      const metadata = await configuration();
      const secrets: TransactionSecrets = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        verifier: oidc.randomPKCECodeVerifier(),
        ...(maxAge !== undefined && { maxAge }),
      };
      const url = oidc.buildAuthorizationUrl(metadata, {
        redirect_uri: redirectUri,
        scope: "openid profile email",
        state: secrets.state,
        nonce: secrets.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(secrets.verifier),
        code_challenge_method: "S256",
        // `prompt` makes the provider ask; `max_age` makes it return `auth_time` (OpenID Connect Core §2).
        ...(maxAge !== undefined && { prompt: "login", max_age: String(maxAge) }),
      });
      return { url: url.href, secrets };
    },

    /** Throws an error if the response is invalid. */
    async finish(callback: URL, { state, nonce, verifier, maxAge }: TransactionSecrets): Promise<Identity> {
      const answer = await oidc
        .authorizationCodeGrant(await configuration(), callback, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
          ...(maxAge !== undefined && { maxAge }),
        })
        .catch(rethrowUnavailable);
      const claims = answer.claims() as oidc.IDToken;
      // OpenID Connect Core §3.1.3.7: the library skips this check if there is only one audience
      if (claims.azp !== undefined && claims.azp !== clientId)
        throw new Error("the ID token is for another client");
      if (!SUBJECT.test(claims.sub)) throw new Error("the subject of the ID token is malformed");
      const { iss: issuer, sub: subject, auth_time: authenticatedAt } = claims;
      if (authenticatedAt && authenticatedAt * 1000 > Date.now() + CLOCK_SKEW_S * 1000)
        throw new Error("the auth_time of the ID token is in the future");
      return {
        issuer,
        subject,
        names: namesOf(claims),
        amr: methodsOf(claims),
        ...(authenticatedAt && { authenticatedAt }),
      };
    },
  };
}

function rethrowUnavailable(error: Error & { code?: string }): never {
  const isUnreachable =
    error.code === "OAUTH_TIMEOUT" || (error instanceof TypeError && error.message === "fetch failed");
  if (isUnreachable)
    throw new ProviderUnavailable("the identity provider does not respond", { cause: error });
  throw error;
}

type Client = { clientId: string; secret: string; fetch: oidc.CustomFetch };

async function discover(issuer: string, { clientId, secret, fetch }: Client): Promise<oidc.Configuration> {
  const execute = issuer.startsWith("http:") ? [oidc.allowInsecureRequests] : [];
  const found = await oidc.discovery(new URL(issuer), clientId, secret, undefined, {
    execute,
    timeout: TIMEOUT_S,
    [oidc.customFetch]: fetch,
  });
  const { supportsPKCE: _, ...metadata } = found.serverMetadata();
  const methods = metadata.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  const authenticate = methods.includes("client_secret_basic")
    ? oidc.ClientSecretBasic
    : oidc.ClientSecretPost;
  const configuration = new oidc.Configuration(
    {
      ...metadata,
      id_token_signing_alg_values_supported: asymmetricOnly(metadata.id_token_signing_alg_values_supported),
    },
    clientId,
    secret,
    authenticate(secret),
  );
  configuration.timeout = TIMEOUT_S;
  configuration[oidc.customFetch] = fetch;
  // By default, the library trusts TLS and doesn't verify the signature.
  oidc.enableNonRepudiationChecks(configuration);
  for (const step of execute) step(configuration);
  return configuration;
}

/** Excludes `none` and the algorithms that sign with the client secret, which others may know. */
function asymmetricOnly(offered: string[] | undefined): string[] {
  const algorithms = (offered ?? ["RS256"]).filter((name) => /^((RS|PS|ES)\d{3}|EdDSA|Ed25519)$/.test(name));
  if (algorithms.length === 0)
    throw new Error("the identity provider offers no asymmetric signature algorithm");
  return algorithms;
}

/**
 * Caches the metadata for an hour, or longer if a refresh fails, which no request waits for. Without any, the pause
 * between attempts doubles.
 */
function cacheDiscovery<T>(fetchIt: () => Promise<T>, onError: (error: unknown) => void) {
  let cached: T | undefined;
  let pending: Promise<T> | undefined;
  let due = 0;
  let pause = FIRST_PAUSE_MS;

  async function renew(): Promise<T> {
    try {
      cached = await fetchIt();
      due = Date.now() + CACHE_MS;
      pause = FIRST_PAUSE_MS;
      return cached;
    } catch (error) {
      onError(error);
      due = Date.now() + pause;
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      if (cached) return cached;
      throw new ProviderUnavailable("the identity provider cannot be reached", { cause: error });
    } finally {
      pending = undefined;
    }
  }

  return {
    isKnown: () => cached !== undefined,

    async configuration(): Promise<T> {
      if (Date.now() >= due) pending ??= renew();
      const found = cached ?? (await pending);
      if (found) return found;
      throw new ProviderUnavailable("the identity provider could not be reached recently");
    },
  };
}

function methodsOf({ amr }: oidc.IDToken): string[] {
  const values: unknown[] = Array.isArray(amr) ? amr : [];
  return values.filter((value): value is string => typeof value === "string" && AMR_VALUE.test(value));
}

function namesOf({ preferred_username, email, name, sub }: oidc.IDToken): string[] {
  return [preferred_username, email, name, sub].filter(
    (text) => typeof text === "string" && text !== "",
  ) as string[];
}

/** `again` asks for a recent sign-in. */
export function createSsoOption(provider: IdentityProvider | undefined) {
  return async (returnTo: string, { again } = { again: false }): Promise<SsoOption | undefined> => {
    if (!provider) return undefined;
    const query = new URLSearchParams({ return_to: returnTo, ...(again && { again: "1" }) });
    const isUnavailable = !(await provider.isReachable());
    return { name: provider.name, href: `/auth/sso?${query}`, isUnavailable };
  };
}
