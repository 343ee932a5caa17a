import { createLocalJWKSet, type JWK, type JWTVerifyGetKey } from "jose";
import type { ClientStore } from "../../adapters/oauth/clients.ts";
import { InvalidJwt, type JwtRules, type VerifiedJwt, verifyJwt } from "../assertions/verify-jwt.ts";
import { createUseRecorder, type ReportError } from "./use-recorder.ts";

/** Verifies assertions with the stored keys of organizations' clients. */
export type ClientKeys = {
  /** @throws InvalidJwt if the assertion is invalid, or if no key of the client verifies its signature */
  verify(clientId: string, assertion: string, rules: Omit<JwtRules, "keys">): Promise<VerifiedJwt>;
};

type Store = Pick<ClientStore, "findKeys" | "markKeyUsed">;

/** Creates the verifier. It reads the keys for every request, so a removed key is rejected immediately. */
export function createClientKeys(clients: Store, onError: ReportError): ClientKeys {
  const recordUse = createUseRecorder((id, at) => clients.markKeyUsed(id, at), onError);
  return {
    async verify(clientId, assertion, rules) {
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
    },
  };
}

/** Returns undefined if the assertion was signed with another key. */
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
