import { type CryptoKey, exportJWK, generateKeyPair, type JWTHeaderParameters, SignJWT } from "jose";
import { OPERATOR } from "../../../resources/events/types.ts";
import { parsePublicKey } from "../../../server/credentials/public-keys.ts";
import { now } from "../clock.ts";
import type { TestOrganization, TestService } from "../service.ts";
import { type Fields, formOf } from "./authorization-request.ts";

export type KeyPair = { publicKey: CryptoKey; privateKey: CryptoKey };

export async function addKey({ storage }: TestService, { id }: TestOrganization, { publicKey }: KeyPair) {
  const key = await parsePublicKey(JSON.stringify(await exportJWK(publicKey)));
  const added = await storage.clients.addKey(id, key, OPERATOR);
  if (typeof added === "string") throw new Error(added);
  return added.id;
}

export async function createKeyFor(service: TestService, app: TestOrganization, alg = "ES256") {
  const pair = await generateKeyPair(alg, { extractable: true });
  await addKey(service, app, pair);
  return pair;
}

/** Signs the assertion of a client (RFC 7523 §2.2); a claim set to undefined is left out. */
export function signAssertion(
  { url }: Pick<TestService, "url">,
  { clientId }: Pick<TestOrganization, "clientId">,
  { privateKey }: Pick<KeyPair, "privateKey">,
  claims: object = {},
  header: Partial<JWTHeaderParameters> = {},
): Promise<string> {
  const id = { iss: clientId, sub: clientId, aud: url, jti: crypto.randomUUID() };
  return new SignJWT({ ...id, iat: now(), exp: now() + 60, ...claims })
    .setProtectedHeader({ alg: "ES256", ...header })
    .sign(privateKey);
}

export function withAssertion(assertion: string, changes: Fields = {}): URLSearchParams {
  return formOf({
    grant_type: "client_credentials",
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    client_assertion: assertion,
    ...changes,
  });
}
