import { createLocalJWKSet, type JWK, type JWTVerifyGetKey } from "jose";
import type { ClientStore } from "../../adapters/oauth/clients.ts";
import { InvalidJwt, type JwtRules, type VerifiedJwt, verifyJwt } from "../assertions/verify-jwt.ts";
import { createUseRecorder, type ReportError } from "./use-recorder.ts";

type Store = Pick<ClientStore, "findKeys" | "markKeyUsed">;

/** Verifies assertions with stored keys, which are read for every request: a removed key is rejected immediately. */
export function createClientKeys(clients: Store, onError: ReportError) {
  const recordUse = createUseRecorder((id, at) => clients.markKeyUsed(id, at), onError);
  return {
    /** Throws InvalidJwt if no key of the client verifies the assertion. */
    async verify(clientId: string, assertion: string, rules: Omit<JwtRules, "keys">): Promise<VerifiedJwt> {
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
