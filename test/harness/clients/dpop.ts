import { hash, randomUUID } from "node:crypto";
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import { postForm, type TestOrganization, type TestService } from "../service.ts";
import { type Fields, formOf } from "./authorization-request.ts";
import { read } from "./oauth.ts";

/** A key pair of a client that uses DPoP. `jkt` is the thumbprint of the public key. */
export type DpopKey = { alg: string; privateKey: CryptoKey; publicKey: CryptoKey; jwk: JWK; jkt: string };

export async function createDpopKey(alg = "ES256"): Promise<DpopKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = await exportJWK(publicKey);
  return { alg, privateKey, publicKey, jwk, jkt: await calculateJwkThumbprint(jwk) };
}

/** What a proof says; `undefined` removes a member that a valid proof has. */
export type Proof = { header?: Record<string, unknown>; claims?: Record<string, unknown> };

/** Signs a proof. Without changes it lacks only what it is about: `htm`, `htu` and, at a resource, `ath`. */
export function signProof({ alg, privateKey, jwk }: DpopKey, { header = {}, claims = {} }: Proof) {
  return new SignJWT({ jti: randomUUID(), iat: Math.floor(Date.now() / 1000), ...claims })
    .setProtectedHeader({ alg, typ: "dpop+jwt", jwk, ...header })
    .sign(privateKey);
}

export const athOf = (token: string): string => hash("sha256", token, "base64url");

export async function postWithProof(url: string, form: URLSearchParams, key: DpopKey, proof: Proof = {}) {
  const claims = { htm: "POST", htu: url, ...proof.claims };
  return read(postForm(url, form, { dpop: await signProof(key, { ...proof, claims }) }));
}

export async function requestWithProof(
  { url }: TestService,
  { clientId, clientSecret }: TestOrganization,
  key: DpopKey,
  { fields = {}, proof = {} }: { fields?: Fields; proof?: Proof } = {},
) {
  const credentials = { client_id: clientId, client_secret: clientSecret };
  const form = formOf({ grant_type: "client_credentials", ...credentials, ...fields });
  return postWithProof(`${url}/oauth/token`, form, key, proof);
}

export async function boundToken(
  service: TestService,
  app: TestOrganization,
  key: DpopKey,
  fields: Fields = {},
): Promise<string> {
  const { status, body, text } = await requestWithProof(service, app, key, { fields });
  if (status !== 200) throw new Error(`the token request failed: ${status} ${text}`);
  return String(body.access_token);
}
