import { randomUUID } from "node:crypto";
import { type CryptoKey, exportJWK, generateKeyPair } from "jose";
import { postForm, type TestService, type TestUser } from "../service.ts";
import { codeFor } from "./authorization.ts";
import { authorizeUrl, type Fields, formOf } from "./authorization-request.ts";
import { signAssertion as signClientAssertion, withAssertion } from "./client-key.ts";
import { type Answer, read, redemptionOf } from "./oauth.ts";

/** A key that a client signs its assertions with, and its public part as a JWK. */
export type SigningKey = { privateKey: CryptoKey; jwk: object; alg: string; kid: string };

/** A client with a metadata document. One with a key authenticates with `private_key_jwt`. */
export type DocumentClient = { clientId: string; redirectUri: string; key?: SigningKey };

export async function createSigningKey(alg = "RS256"): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg);
  const kid = randomUUID();
  return { privateKey, alg, kid, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } };
}

export function signAssertion(service: TestService, client: DocumentClient): Promise<string> {
  const { key, clientId } = client;
  if (!key) throw new TypeError(`${clientId} has no key`);
  return signClientAssertion(service, client, key, {}, { alg: key.alg, kid: key.kid });
}

export async function postAsDocument(
  service: TestService,
  endpoint: string,
  client: DocumentClient,
  fields: Fields,
): Promise<Answer> {
  const form = client.key
    ? withAssertion(await signAssertion(service, client), { grant_type: undefined, ...fields })
    : formOf({ client_id: client.clientId, ...fields });
  return read(postForm(`${service.url}/oauth/${endpoint}`, form));
}

export function authorizeUrlOf(service: TestService, client: DocumentClient, changes: Fields = {}): string {
  const { clientId, redirectUri: redirect_uri } = client;
  return authorizeUrl(service, { clientId }, { redirect_uri, ...changes });
}

export async function connectDocument(
  service: TestService,
  client: DocumentClient,
  user: TestUser,
  organizationId?: string,
): Promise<{ accessToken: string; refreshToken: string }> {
  const redirect_uri = client.redirectUri;
  const options = { changes: { redirect_uri }, ...(organizationId && { organizationId }) };
  const fields = { ...redemptionOf(await codeFor(service, client, user, options)), redirect_uri };
  const { status, body, text } = await postAsDocument(service, "token", client, fields);
  if (status !== 200) throw new Error(`no tokens: ${text}`);
  return { accessToken: String(body.access_token), refreshToken: String(body.refresh_token) };
}
