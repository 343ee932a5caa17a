import { randomUUID } from "node:crypto";
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from "jose";
import { postForm, type TestService, type TestUser } from "../service.ts";
import { type Answer, allow, authorizeUrl, type Fields, formOf, read, VERIFIER } from "./oauth.ts";

const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** A key that a client signs its assertions with, and its public part as a JWK. */
export type SigningKey = { privateKey: CryptoKey; jwk: object; alg: string; kid: string };

/** A client with a metadata document. One with a key authenticates with `private_key_jwt`. */
export type DocumentClient = { clientId: string; redirectUri: string; key?: SigningKey };

/** Generates a key for assertions. */
export async function createSigningKey(alg = "RS256"): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg);
  const kid = randomUUID();
  return { privateKey, alg, kid, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } };
}

/** Signs an assertion of a client for a service (RFC 7523 §2.2). */
export function signAssertion({ url }: TestService, client: DocumentClient): Promise<string> {
  const { key, clientId } = client;
  if (!key) throw new TypeError(`${clientId} has no key`);
  return new SignJWT({ jti: randomUUID() })
    .setProtectedHeader({ alg: key.alg, kid: key.kid })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(url)
    .setIssuedAt()
    .setExpirationTime("5m")
    .sign(key.privateKey);
}

/** Sends a request to an OAuth endpoint as a client, which authenticates if it has a key. */
export async function postAsDocument(
  service: TestService,
  endpoint: string,
  client: DocumentClient,
  fields: Fields,
): Promise<Answer> {
  const authentication = client.key
    ? { client_assertion_type: ASSERTION_TYPE, client_assertion: await signAssertion(service, client) }
    : { client_id: client.clientId };
  return read(postForm(`${service.url}/oauth/${endpoint}`, formOf({ ...authentication, ...fields })));
}

/** Returns the URL of an authorization request of a client. */
export function authorizeUrlOf(service: TestService, client: DocumentClient, changes: Fields = {}): string {
  const { clientId, redirectUri: redirect_uri } = client;
  return authorizeUrl(service, { clientId }, { redirect_uri, ...changes });
}

/** Runs the code flow of a client; the user allows access on the real pages. */
export async function connectDocument(
  service: TestService,
  client: DocumentClient,
  user: TestUser,
  organizationId?: string,
): Promise<{ accessToken: string; refreshToken: string }> {
  const options = organizationId ? { organizationId } : {};
  const callback = await allow(service, user, authorizeUrlOf(service, client), options);
  const { status, body, text } = await postAsDocument(service, "token", client, {
    grant_type: "authorization_code",
    code: callback.searchParams.get("code") ?? "",
    redirect_uri: client.redirectUri,
    code_verifier: VERIFIER,
  });
  if (status !== 200) throw new Error(`no tokens: ${text}`);
  return { accessToken: String(body.access_token), refreshToken: String(body.refresh_token) };
}
