import { setTimeout as sleep } from "node:timers/promises";
import * as oidc from "openid-client";
import type { Settings } from "../config.ts";

/** Someone as the identity provider knows him or her. Only `issuer` and `subject` together say who it is. */
export type Identity = {
  issuer: string;
  subject: string;
  /** What the person may be called here, best first; anybody can be called so. */
  names: string[];
  /** When the provider last saw the person show who it is, in epoch seconds, if it says so. */
  authenticatedAt?: number;
};

/** What one sign-in under way remembers, kept by the browser that began it. */
export type Secrets = { state: string; nonce: string; verifier: string; maxAge?: number };

/** The external identity provider, as its OpenID Connect client. */
export type IdentityProvider = {
  name: string;
  /** Whether it answers, as far as is known within a second. */
  isThere(): Promise<boolean>;
  /** Where to send the browser. `maxAge`: the person has to sign in there anew, and be back in so many seconds. */
  begin(maxAge?: number): Promise<{ url: string; secrets: Secrets }>;
  /** Who came back with this address. Rejects with whatever is wrong with the answer. */
  finish(callback: URL, secrets: Secrets): Promise<Identity>;
};

/** The provider cannot be reached, or describes itself in a way that is no good. */
export class ProviderAway extends Error {
  override readonly name = "ProviderAway";
}

const TIMEOUT_S = 5;
const PATIENCE_MS = 1000;
const KNOWN_FOR_MS = 3600_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
// OpenID Connect Core §2: ours to store, and no longer than this in ASCII.
const SUBJECT = /^[\x20-\x7e]{1,255}$/;

/** The provider of the settings; nothing when there is none. `onError` is told why it cannot be reached. */
export function createIdentityProvider(
  settings: Settings,
  redirectUri: string,
  onError: (error: unknown) => void,
): IdentityProvider | undefined {
  const { IDP_ISSUER, IDP_CLIENT_ID: clientId, IDP_CLIENT_SECRET: secret, IDP_NAME: name } = settings;
  if (!IDP_ISSUER || !clientId || !secret || !name) return undefined;
  const configuration = cached(() => discover(IDP_ISSUER, clientId, secret), onError);

  return {
    name,

    async isThere() {
      const attempt = configuration().then(
        () => true,
        () => false,
      );
      return Promise.race([attempt, sleep(PATIENCE_MS, true, { ref: false })]);
    },

    async begin(maxAge) {
      const known = await configuration();
      const secrets: Secrets = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        verifier: oidc.randomPKCECodeVerifier(),
        ...(maxAge !== undefined && { maxAge }),
      };
      const url = oidc.buildAuthorizationUrl(known, {
        redirect_uri: redirectUri,
        scope: "openid profile email",
        state: secrets.state,
        nonce: secrets.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(secrets.verifier),
        code_challenge_method: "S256",
        // `prompt` makes the provider ask; with `max_age` it has to say when it did (OpenID Connect Core §2, `auth_time`).
        ...(maxAge !== undefined && { prompt: "login", max_age: String(maxAge) }),
      });
      return { url: url.href, secrets };
    },

    async finish(callback, { state, nonce, verifier, maxAge }) {
      const answer = await oidc
        .authorizationCodeGrant(await configuration(), callback, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
          ...(maxAge !== undefined && { maxAge }),
        })
        .catch(explainAway);
      const claims = answer.claims() as oidc.IDToken;
      // OpenID Connect Core §3.1.3.7: also where there is one audience, for which the library leaves it out
      if (claims.azp !== undefined && claims.azp !== clientId)
        throw new Error("the id_token is for another client");
      if (!SUBJECT.test(claims.sub)) throw new Error("the subject of the id_token cannot be kept");
      const { iss: issuer, sub: subject, auth_time: authenticatedAt } = claims;
      return { issuer, subject, names: namesOf(claims), ...(authenticatedAt && { authenticatedAt }) };
    },
  };
}

/** Tells a provider that does not answer from one that answers wrongly. */
function explainAway(error: Error & { code?: string }): never {
  const isAway =
    error.code === "OAUTH_TIMEOUT" || (error instanceof TypeError && error.message === "fetch failed");
  if (isAway) throw new ProviderAway("the identity provider does not answer", { cause: error });
  throw error;
}

async function discover(issuer: string, clientId: string, secret: string): Promise<oidc.Configuration> {
  const execute = issuer.startsWith("http:") ? [oidc.allowInsecureRequests] : [];
  const found = await oidc.discovery(new URL(issuer), clientId, secret, undefined, {
    execute,
    timeout: TIMEOUT_S,
  });
  const { supportsPKCE: _, ...metadata } = found.serverMetadata();
  const methods = metadata.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  const authenticate = methods.includes("client_secret_basic")
    ? oidc.ClientSecretBasic
    : oidc.ClientSecretPost;
  const configuration = new oidc.Configuration(
    {
      ...metadata,
      id_token_signing_alg_values_supported: asymmetric(metadata.id_token_signing_alg_values_supported),
    },
    clientId,
    secret,
    authenticate(secret),
  );
  configuration.timeout = TIMEOUT_S;
  // The library would trust TLS alone: a signature that nobody checks is none.
  oidc.enableNonRepudiationChecks(configuration);
  for (const step of execute) step(configuration);
  return configuration;
}

/** An id_token that anybody could have signed who knows the client's secret, or nobody has, is not accepted. */
function asymmetric(offered: string[] | undefined): string[] {
  const algorithms = (offered ?? ["RS256"]).filter((name) => /^((RS|PS|ES)\d{3}|EdDSA|Ed25519)$/.test(name));
  if (algorithms.length === 0) throw new Error("the identity provider signs with no key of its own");
  return algorithms;
}

/**
 * Asks when it is first needed and again after an hour. While the provider is away the last answer stays good; without
 * one, it is not asked again before a pause that grows.
 */
function cached<T>(ask: () => Promise<T>, onError: (error: unknown) => void): () => Promise<T> {
  let known: T | undefined;
  let underWay: Promise<T> | undefined;
  let due = 0;
  let pause = FIRST_PAUSE_MS;

  async function renew(): Promise<T> {
    try {
      known = await ask();
      due = Date.now() + KNOWN_FOR_MS;
      pause = FIRST_PAUSE_MS;
      return known;
    } catch (error) {
      onError(error);
      due = Date.now() + pause;
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      if (known) return known;
      throw new ProviderAway("the identity provider cannot be reached", { cause: error });
    } finally {
      underWay = undefined;
    }
  }

  return async () => {
    if (underWay) return known ?? underWay;
    if (Date.now() >= due) {
      underWay = renew();
      return underWay;
    }
    if (known) return known;
    throw new ProviderAway("the identity provider could not be reached a moment ago");
  };
}

function namesOf({ preferred_username, email, name, sub }: oidc.IDToken): string[] {
  return [preferred_username, email, name, sub].filter(
    (text) => typeof text === "string" && text !== "",
  ) as string[];
}
