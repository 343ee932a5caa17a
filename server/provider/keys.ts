import { generateKeyPair, randomBytes } from "node:crypto";
import { promisify } from "node:util";
import type { JWK } from "oidc-provider";
import type { KeyStore } from "../../adapters/keys.ts";

const RSA_BITS = 2048; // RFC 7518 §3.3: at least
const COOKIE_KEYS = 2;

/** The keys that every process shares; made on the first start, kept encrypted in the database. */
export type Keys = {
  /** Signs id_tokens: RS256, which every OpenID Connect client can verify (OIDC Discovery §3). */
  jwks: { keys: JWK[] };
  cookies: string[];
  /** Signs cursors and form tokens. */
  signing: string;
};

/** @throws WrongEncryptionKey */
export async function loadKeys(store: KeyStore): Promise<Keys> {
  return {
    jwks: JSON.parse(await store.load("jwks", makeJwks)),
    cookies: JSON.parse(await store.load("cookies", async () => JSON.stringify(makeCookieKeys()))),
    signing: await store.load("signing", async () => randomSecret()),
  };
}

async function makeJwks(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: RSA_BITS });
  const kid = randomBytes(8).toString("base64url");
  return JSON.stringify({
    keys: [{ ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "RS256" }],
  });
}

function makeCookieKeys(): string[] {
  return Array.from({ length: COOKIE_KEYS }, randomSecret);
}

function randomSecret(): string {
  return randomBytes(32).toString("base64url");
}
