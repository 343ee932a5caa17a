import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, type JWK, type JWTVerifyGetKey } from "jose";
import { type Client, errors, type KoaContextWithOIDC, type Provider } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import { clientKindOf } from "../../adapters/oauth/app-policy.ts";
import { JWT_BEARER_GRANT } from "../../adapters/oauth/oidc/clients.ts";
import { tryTo } from "../../resources/try-to.ts";
import { createKeySets, type KeySets } from "../assertions/key-sets.ts";
import {
  InvalidJwt,
  type JwtRules,
  useJwtOnce,
  type VerifiedJwt,
  verifyJwt,
} from "../assertions/verify-jwt.ts";
import { isFapi } from "../clients/client-metadata.ts";
import { createUseRecorder, type ReportError } from "../clients/use-recorder.ts";
import type { Dependencies } from "../dependencies.ts";
import { ENDPOINTS } from "../oauth-endpoints.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { checkAssertion } from "./fapi.ts";
import { isAboutUser } from "./identity-assertions.ts";
import { requireUsableToIssue } from "./require-api-access.ts";
import { createAuthenticateWorkload, untrustedIssuer } from "./workloads.ts";

// Assertions are made for one request. RFC 7523 §3 leaves the limit to the server.
const MAX_AGE_S = 600;

const JWT_BEARER_CLIENT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

type Params = Record<string, unknown>;

type Assertion = {
  clientId: string;
  assertion: string;
  /** Its unverified `iss`. */
  issuer: unknown;
  /** Whether it was sent as an authorization grant (RFC 7523 §2.1), not as `client_assertion` (§2.2). */
  isGrant: boolean;
};

/** RFC 7523 §2.1, §2.2. Throws InvalidClientAuth, InvalidGrant or UnauthorizedClient; false without an assertion. */
export type AuthenticateByAssertion = (ctx: KoaContextWithOIDC) => Promise<boolean>;

export type AssertionOptions = Pick<Dependencies, "fetch" | "fetchConfigured"> & {
  storage: Pick<Storage, "clients" | "replays" | "trustRules">;
};

/** Unlike oidc-provider's, it keeps fetched keys, and knows the tokens of workloads. */
export function createAuthenticateByAssertion(
  provider: Provider,
  { storage, fetch, fetchConfigured }: AssertionOptions,
  limits: AuthenticationLimits["assertions"],
): AuthenticateByAssertion {
  const keySets = createKeySets(fetch);
  const verifyWithStoredKeys = createVerifyWithStoredKeys(storage.clients, (error) =>
    provider.emit("error", error),
  );
  const authenticateWorkload = createAuthenticateWorkload(storage, createKeySets(fetchConfigured));

  async function verify(ctx: KoaContextWithOIDC, client: Client, given: Assertion): Promise<void> {
    const { assertion, issuer } = given;
    if (isOfWorkload(given)) {
      if (isFapi(client)) throw new InvalidJwt("FAPI 2.0 requires an assertion that the client signed");
      const workload = await authenticateWorkload(ctx, client, { assertion, issuer });
      const useOnce = () => workload.useOnce().catch((error) => refuse(error, given));
      return ctx.oidc.entity("Workload", { ...workload, useOnce });
    }
    const rules = {
      issuer: client.clientId,
      audiences: audiencesOf(provider, ctx),
      // draft-ietf-oauth-rfc7523bis: a server that is also named could present it here
      isSingleAudience: true,
      maxAgeS: MAX_AGE_S,
      requiredClaims: ["sub", "jti"],
    };
    const verified =
      clientKindOf(client.clientId) === "organization"
        ? await verifyWithStoredKeys(client.clientId, assertion, rules)
        : await verifyJwt(assertion, { ...rules, keys: keysOf(client, keySets) });
    if (verified.claims.sub !== client.clientId) throw new InvalidJwt("sub must be the client ID");
    // OpenID Connect Dynamic Client Registration §2: the client allows no other.
    const { clientAuthSigningAlg: alg } = client;
    if (alg && verified.header.alg !== alg) throw new InvalidJwt(`alg must be ${alg}`);
    if (isFapi(client)) checkAssertion(verified, provider.issuer);
    await useJwtOnce(storage.replays, assertion, verified);
  }

  return async function authenticateByAssertion(ctx) {
    const given = findAssertion(ctx);
    if (!given) return false;
    // The token of a workload also identifies the client, so it gets what `client_credentials` would get.
    if (given.isGrant) Object.assign(ctx.oidc.params as Params, { grant_type: "client_credentials" });
    const client = await provider.Client.find(given.clientId);
    // Respond as if no rule matched, so that callers can't find out which client IDs exist.
    if (!client && isOfWorkload(given)) refuse(untrustedIssuer(), given);
    if (!client) throw new errors.InvalidClientAuth("client not found");
    ctx.oidc.entity("Client", client);
    await limits.check(ctx, client.clientId);
    await verify(ctx, client, given).catch(async (error) => {
      await limits.failed(ctx, client.clientId);
      refuse(error, given);
    });
    requireUsableToIssue(ctx, client);
    return true;
  };
}

/** oidc-provider rejects assertions beside other authentication. */
function findAssertion(ctx: KoaContextWithOIDC): Assertion | undefined {
  const params = ctx.oidc.params as Params;
  if (params.client_secret !== undefined || ctx.get("authorization")) return undefined;
  if (params.client_assertion !== undefined) return findClientAssertion(params);
  return params.grant_type === JWT_BEARER_GRANT ? findWorkloadGrant(params) : undefined;
}

function findClientAssertion(params: Params): Assertion | undefined {
  const { client_assertion: assertion, client_assertion_type: type } = params;
  if (typeof assertion !== "string" || type !== JWT_BEARER_CLIENT) return undefined;
  const claims = decode(assertion);
  // RFC 7523 §3.2. oidc-provider would respond with invalid_request.
  if (!claims) refuse(new InvalidJwt("the JWT is malformed"), { isGrant: false });
  // The subject is the client, but for tokens of workloads, which name their own (RFC 7523 §3).
  const clientId = params.client_id ?? claims.sub;
  if (typeof clientId !== "string") return undefined;
  return { clientId, assertion, issuer: claims.iss, isGrant: false };
}

/** The client has to authenticate besides an assertion about a user, so it is left to its grant. */
function findWorkloadGrant(params: Params): Assertion | undefined {
  const { assertion, client_id: clientId } = params;
  if (assertion === undefined) throw new errors.InvalidRequest("assertion is required");
  if (typeof assertion !== "string") throw new errors.InvalidRequest("assertion must not be provided twice");
  if (typeof clientId !== "string" || isAboutUser(assertion)) return undefined;
  return { clientId, assertion, issuer: decode(assertion)?.iss, isGrant: true };
}

const decode = (jwt: string) => tryTo(() => decodeJwt(jwt));

/** Clients sign assertions of their own only to authenticate. */
function isOfWorkload({ clientId, issuer, isGrant }: Assertion): boolean {
  return isGrant || issuer !== clientId;
}

/** RFC 7523 §3: the issuer, or the token endpoint as older clients use it. */
function audiencesOf({ issuer }: Provider, { path }: KoaContextWithOIDC): string[] {
  return [issuer, issuer + ENDPOINTS.token.path, `${issuer}${path}`];
}

/** Throws InvalidJwt if the client has no keys. */
function keysOf({ jwks, jwksUri }: Client, keySets: KeySets): JWTVerifyGetKey {
  if (jwks?.keys.length) return createLocalJWKSet(jwks as JSONWebKeySet);
  if (jwksUri) return keySets.at(jwksUri);
  throw new InvalidJwt("the client has no keys");
}

/**
 * Creates a function that verifies assertions with stored keys, and throws InvalidJwt if none fits. The keys are read for
 * every request, so a removed one is rejected immediately.
 */
function createVerifyWithStoredKeys(clients: AssertionOptions["storage"]["clients"], onError: ReportError) {
  const recordUse = createUseRecorder((id, at) => clients.markKeyUsed(id, at), onError);
  return async (clientId: string, assertion: string, rules: Omit<JwtRules, "keys">): Promise<VerifiedJwt> => {
    const keys = await clients.findKeys(clientId);
    // Refused like by a client with other keys: anyone may ask, and how a client authenticates is not public.
    if (keys.length === 0) await verifyWith([], assertion, rules);
    for (const { id, jwk } of keys) {
      const verified = await verifyWith([jwk], assertion, rules);
      if (!verified) continue;
      recordUse(id);
      return verified;
    }
    throw new InvalidJwt("no key of the client verifies the signature");
  };
}

async function verifyWith(jwks: object[], assertion: string, rules: Omit<JwtRules, "keys">) {
  try {
    return await verifyJwt(assertion, { ...rules, keys: keySet(jwks) });
  } catch (error) {
    if (error instanceof InvalidJwt && error.isOtherKey) return undefined;
    throw error;
  }
}

/** Ignores `kid`: clients may name their keys differently, or not at all. */
function keySet(jwks: object[]): JWTVerifyGetKey {
  const find = createLocalJWKSet({ keys: jwks as JWK[] });
  return ({ kid: _, ...header }, token) => find(header, token);
}

/** RFC 7521 §4.1.1 and §4.2.1: the error depends on what the assertion was sent as. Rethrows other errors. */
function refuse(error: unknown, { isGrant }: Pick<Assertion, "isGrant">): never {
  if (!(error instanceof InvalidJwt)) throw error;
  const { message } = error;
  const refusal = isGrant ? new errors.InvalidGrant(message) : new errors.InvalidClientAuth(message);
  // oidc-provider would describe every failure alike. These say nothing about the client that is not public.
  refusal.error_description = `${isGrant ? "assertion" : "client_assertion"} is invalid: ${message}`;
  throw refusal;
}
