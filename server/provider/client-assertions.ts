import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { type Client, errors, type KoaContextWithOIDC, Provider } from "oidc-provider";
import { clientKindOf } from "../../adapters/oauth/client-kinds.ts";
import type { ReplayStore } from "../../adapters/oauth/replay.ts";
import type { KeySets } from "../assertions/key-sets.ts";
import { InvalidJwt, useJwtOnce, verifyJwt } from "../assertions/verify-jwt.ts";
import type { ClientKeys } from "../clients/client-keys.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { type Assertion, takeAssertion } from "./assertion-parameters.ts";
import { requireUsableToIssue } from "./client-authentication.ts";
import { type AuthenticateWorkload, setWorkload, untrustedIssuer } from "./workloads.ts";

// Assertions are made for one request. RFC 7523 §3 leaves the limit to the server.
const MAX_AGE_S = 600;

type Params = Record<string, unknown>;

/** Authenticates clients by assertions: as `client_assertion` (RFC 7523 §2.2), or as the grant of a workload (§2.1). */
export type ClientAssertions = {
  /** Takes the assertion out of the parameters of the current request, if it is the only client authentication. */
  setAside(params: Params): void;
  /** Verifies the assertion of the current request, once the client was found. @throws InvalidClientAuth, InvalidGrant */
  authenticate(client: Client): Promise<void>;
  /** Refuses the token of a workload for an unknown client like that for one without a matching rule. */
  refuseUnknown(clientId: string): void;
};

type Options = {
  provider: Provider;
  keySets: KeySets;
  replays: ReplayStore;
  limits: AuthenticationLimits["assertions"];
  clientKeys: ClientKeys;
  authenticateWorkload: AuthenticateWorkload;
};

/**
 * Replaces the library's verification of client assertions with ours, which keeps fetched keys, detects replays across
 * processes, and knows the tokens of workloads. To the library, an authenticated request is then one that needs no
 * further authentication.
 */
export function createClientAssertions(options: Options): ClientAssertions {
  const { provider, limits, replays } = options;
  const pending = new WeakMap<object, Assertion>();
  const authenticated = new WeakMap<object, string>();
  reportAsAuthenticated(provider, ({ clientId }, ctx) => authenticated.get(ctx) === clientId);

  async function verify(ctx: KoaContextWithOIDC, client: Client, given: Assertion): Promise<void> {
    const { assertion, issuer } = given;
    if (isOfWorkload(given)) {
      const workload = await options.authenticateWorkload(ctx, client, { assertion, issuer });
      const useOnce = () => workload.useOnce().catch((error) => refuse(error, given));
      return setWorkload(ctx, { ...workload, useOnce });
    }
    const rules = {
      issuer: client.clientId,
      audiences: audiencesOf(provider),
      maxAgeS: MAX_AGE_S,
      requiredClaims: ["sub", "jti"],
    };
    const verified =
      clientKindOf(client.clientId) === "organization"
        ? await options.clientKeys.verify(client.clientId, assertion, rules)
        : await verifyJwt(assertion, { ...rules, keys: keysOf(client, options.keySets) });
    if (verified.claims.sub !== client.clientId) throw new InvalidJwt("sub must be the client ID");
    // OpenID Connect Dynamic Client Registration §2: the client allows no other.
    const { clientAuthSigningAlg: alg } = client;
    if (alg && verified.header.alg !== alg) throw new InvalidJwt(`alg must be ${alg}`);
    await useJwtOnce(replays, assertion, verified);
  }

  /** Takes the pending assertion for a client. */
  function take(clientId: string): { ctx: KoaContextWithOIDC; given: Assertion } | undefined {
    const { ctx } = Provider;
    const given = ctx && pending.get(ctx);
    if (given?.clientId !== clientId) return undefined;
    pending.delete(ctx as KoaContextWithOIDC);
    return { ctx: ctx as KoaContextWithOIDC, given };
  }

  return {
    setAside(params) {
      const { ctx } = Provider;
      const given = ctx && takeAssertion(ctx, params);
      if (given) pending.set(ctx, given);
    },

    async authenticate(client) {
      const taken = take(client.clientId);
      if (!taken) return;
      const { ctx, given } = taken;
      // The library sets it before it authenticates a client. A failure counts against this one.
      ctx.oidc.entity("Client", client);
      await limits.check(ctx, client.clientId);
      await verify(ctx, client, given).catch(async (error) => {
        await limits.failed(ctx, client.clientId);
        refuse(error, given);
      });
      requireUsableToIssue(ctx, client);
      authenticated.set(ctx, client.clientId);
    },

    refuseUnknown(clientId) {
      const given = take(clientId)?.given;
      if (given && isOfWorkload(given)) refuse(untrustedIssuer(), given);
    },
  };
}

/** Returns whether an assertion is the token of a workload. Clients sign assertions of their own only to authenticate. */
function isOfWorkload({ clientId, issuer, isGrant }: Assertion): boolean {
  return isGrant || issuer !== clientId;
}

/** Lets the library treat a client as public in a request that an assertion has authenticated. */
function reportAsAuthenticated(
  { Client }: Provider,
  isAuthenticated: (client: Client, ctx: KoaContextWithOIDC) => boolean,
): void {
  Object.defineProperty(Client.prototype, "clientAuthMethod", {
    configurable: true,
    get(this: Client) {
      const { ctx } = Provider;
      return ctx && isAuthenticated(this, ctx) ? "none" : this.tokenEndpointAuthMethod;
    },
  });
}

/** RFC 7523 §3: the issuer, or the token endpoint as older clients use it. */
function audiencesOf(provider: Provider): string[] {
  const { issuer } = provider;
  return [issuer, `${issuer}/oauth/token`, `${issuer}${Provider.ctx?.path ?? ""}`];
}

/** Returns the keys of a client: listed in its metadata, or at its `jwks_uri`. @throws InvalidJwt if there are none */
function keysOf({ jwks, jwksUri }: Client, keySets: KeySets): JWTVerifyGetKey {
  if (jwks?.keys.length) return createLocalJWKSet(jwks as JSONWebKeySet);
  if (jwksUri) return keySets.at(jwksUri);
  throw new InvalidJwt("the client has no keys");
}

/** RFC 7521 §4.1.1 and §4.2.1: the error of an invalid assertion depends on what it was sent as. Throws others as they are. */
function refuse(error: unknown, { isGrant }: Assertion): never {
  if (!(error instanceof InvalidJwt)) throw error;
  const { message } = error;
  const refusal = isGrant ? new errors.InvalidGrant(message) : new errors.InvalidClientAuth(message);
  // The library would describe every failure alike. These say nothing about the client that is not public.
  refusal.error_description = `${isGrant ? "assertion" : "client_assertion"} is invalid: ${message}`;
  throw refusal;
}
