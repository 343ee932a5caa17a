import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { type Client, errors, type KoaContextWithOIDC, Provider } from "oidc-provider";
import { clientKindOf } from "../../adapters/oauth/client-kinds.ts";
import type { ReplayStore } from "../../adapters/oauth/replay.ts";
import type { KeySets } from "../assertions/key-sets.ts";
import { InvalidJwt, useJwtOnce, verifyJwt } from "../assertions/verify-jwt.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { requirePaidPlanToIssue } from "./client-authentication.ts";
import type { ClientKeys } from "./client-keys.ts";

const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
// Assertions are made for one request. RFC 7523 §3 leaves the limit to the server.
const MAX_AGE_S = 600;

type Params = Record<string, unknown>;
type Pending = { clientId: string; assertion: string; issuer: unknown };

/**
 * Authenticates a client by an assertion of another issuer, such as the token of a CI job.
 * @throws InvalidJwt if the assertion is invalid, or if the client doesn't trust its issuer
 */
export type AuthenticateWorkload = (client: Client, assertion: string, issuer: string) => Promise<void>;

/** Authenticates clients by `client_assertion` (RFC 7523 §2.2). */
export type ClientAssertions = {
  /** Takes the assertion out of the parameters of the current request, if it is the only client authentication. */
  setAside(params: Params): void;
  /** Verifies the assertion of the current request, once the client was found. @throws InvalidClientAuth */
  authenticate(client: Client): Promise<void>;
};

type Options = {
  provider: Provider;
  keySets: KeySets;
  replays: ReplayStore;
  limits: Pick<AuthenticationLimits, "checkClient">;
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
  const pending = new WeakMap<object, Pending>();
  const authenticated = new WeakMap<object, string>();
  reportAsAuthenticated(provider, ({ clientId }, ctx) => authenticated.get(ctx) === clientId);

  async function verify(client: Client, { assertion, issuer }: Pending): Promise<void> {
    if (issuer !== client.clientId) {
      return options.authenticateWorkload(client, assertion, typeof issuer === "string" ? issuer : "");
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
    await useJwtOnce(replays, assertion, verified);
  }

  return {
    setAside(params) {
      const { ctx } = Provider;
      const found = ctx && readAssertion(ctx, params);
      if (!found) return;
      pending.set(ctx, found);
      params.client_id = found.clientId;
      delete params.client_assertion;
      delete params.client_assertion_type;
    },

    async authenticate(client) {
      const { ctx } = Provider;
      const found = ctx && pending.get(ctx);
      if (!found || found.clientId !== client.clientId) return;
      pending.delete(ctx);
      await limits.checkClient(ctx, client.clientId);
      try {
        await verify(client, found);
      } catch (error) {
        throw error instanceof InvalidJwt ? invalidClient(error) : error;
      }
      requirePaidPlanToIssue(ctx, client);
      authenticated.set(ctx, client.clientId);
    },
  };
}

/** Returns the assertion of a request. The library rejects malformed ones, and those beside other authentication. */
function readAssertion(ctx: KoaContextWithOIDC, params: Params): Pending | undefined {
  const { client_assertion: assertion, client_assertion_type: type, client_secret, client_id } = params;
  if (typeof assertion !== "string" || type !== JWT_BEARER) return undefined;
  if (client_secret !== undefined || ctx.get("authorization")) return undefined;
  try {
    const { iss, sub } = decodeJwt(assertion);
    // The subject is the client, but for tokens of others, which name their own (RFC 7523 §3).
    const clientId = client_id ?? sub;
    return typeof clientId === "string" ? { clientId, assertion, issuer: iss } : undefined;
  } catch {
    return undefined;
  }
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

function invalidClient({ message }: InvalidJwt): errors.InvalidClientAuth {
  const error = new errors.InvalidClientAuth(message);
  // The library would describe every failure alike. These say nothing about the client that is not public.
  error.error_description = `client_assertion is invalid: ${message}`;
  return error;
}
