import { generateKeyPair, hkdfSync, randomBytes } from "node:crypto";
import { promisify } from "node:util";
import type { JWK } from "oidc-provider";
import type { KeyStore } from "../../adapters/crypto/keys.ts";

const RSA_BITS = 2048; // RFC 7518 §3.3: the minimum
const COOKIE_KEYS = 2;

/** The keys that all processes share: generated on first start, and stored encrypted in the database. */
export type Keys = {
  /** Signs id_tokens: RS256, which every OpenID Connect client can verify (OIDC Discovery §3). */
  jwks: { keys: JWK[] };
  cookies: string[];
  /** Signs cursors and form tokens; the secret of DPoP nonces is derived from it. */
  signing: string;
};

/** @throws WrongEncryptionKey if the stored keys were encrypted with another key */
export async function loadKeys(store: KeyStore): Promise<Keys> {
  return {
    jwks: JSON.parse(await store.load("jwks", generateJwks)),
    cookies: JSON.parse(await store.load("cookies", async () => JSON.stringify(generateCookieKeys()))),
    signing: await store.load("signing", async () => randomSecret()),
  };
}

/** Derives the secret of DPoP nonces. */
export function nonceSecretOf({ signing }: Keys): Buffer {
  return Buffer.from(hkdfSync("sha256", signing, "", "linkgate dpop nonce", 32));
}

async function generateJwks(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: RSA_BITS });
  const kid = randomBytes(8).toString("base64url");
  return JSON.stringify({
    keys: [{ ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "RS256" }],
  });
}

function generateCookieKeys(): string[] {
  return Array.from({ length: COOKIE_KEYS }, randomSecret);
}

function randomSecret(): string {
  return randomBytes(32).toString("base64url");
}
