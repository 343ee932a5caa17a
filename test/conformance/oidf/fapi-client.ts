import { randomUUID } from "node:crypto";
import type { CryptoKey } from "jose";
import * as oidc from "openid-client";
import { type Fields, formOf, pkce } from "../../harness/clients/authorization-request.ts";
import { createKeyFor, signAssertion, withAssertion } from "../../harness/clients/client-key.ts";
import type { DpopKey, Proof } from "../../harness/clients/dpop.ts";
import { athOf, createDpopKey, postWithProof, signProof } from "../../harness/clients/dpop.ts";
import { read } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { OPERATOR, postForm, type TestOrganization } from "../../harness/service.ts";
import { type Client, type Deployment, REDIRECT_URI } from "./deployment.ts";
import { follow } from "./relying-party.ts";

export const OTHER_REDIRECT_URI = `${REDIRECT_URI}?dummy1=lorem&dummy2=ipsum`;

/** A client of the profile: it authenticates with a key (RFC 7523), and binds its tokens to another one (RFC 9449). */
export type FapiClient = Client & { alg: string; privateKey: CryptoKey; dpop: DpopKey };

/** What a valid authorization of openid-client has that others don't. */
export type Choices = {
  parameters?: Fields;
  /** Claims of each assertion and each proof of possession. */
  assertion?: Record<string, number>;
  proof?: Record<string, number>;
  isBoundEarly?: boolean;
};

/** What a request that openid-client would not send differs in; `null` leaves the part out. */
export type Variation = {
  fields?: Fields;
  assertion?: Record<string, unknown> | null;
  /** The algorithm of the assertion, with the key that fits. */
  signer?: Pick<FapiClient, "alg" | "privateKey">;
  proof?: Proof | null;
  dpop?: DpopKey;
};

function withClaims(claims: Record<string, number>): oidc.ModifyAssertionOptions {
  return { [oidc.modifyAssertion]: (_, payload) => void Object.assign(payload, claims) };
}

const requestWith = (code_challenge: string) => ({
  redirect_uri: REDIRECT_URI,
  scope: "links:read offline_access",
  prompt: "consent",
  state: randomUUID(),
  code_challenge,
  code_challenge_method: "S256",
});

/** Gives a client a key instead of its secrets, and restricts it to the profile. */
export async function toFapiClient({ service }: Deployment, client: Client, alg = "ES256") {
  const { organizationId } = client;
  const { clients } = service.storage;
  const organization = { id: organizationId } as TestOrganization;
  const { privateKey } = await createKeyFor(service, organization, alg);
  await clients.removeSecrets(organizationId, OPERATOR);
  await clients.setRedirectUris(organizationId, [REDIRECT_URI, OTHER_REDIRECT_URI], OPERATOR);
  await clients.setFapi(organizationId, true, OPERATOR);
  return { ...client, alg, privateKey, dpop: await createDpopKey() };
}

/** The requests of a client, which has a server's endpoints from its metadata. */
export function createFapiFlow(
  deployment: Pick<Deployment, "issuer" | "user">,
  metadata: Record<string, string>,
) {
  const { issuer } = deployment;

  async function post(client: FapiClient, url: string, fields: Fields, variation: Variation = {}) {
    const { assertion = {}, signer = client, proof = {}, dpop = client.dpop } = variation;
    const identity = [{ url: issuer }, { clientId: client.id }, signer] as const;
    const signed = assertion && (await signAssertion(...identity, assertion, { alg: signer.alg }));
    const all = { grant_type: undefined, client_id: client.id, ...fields, ...variation.fields };
    const form = signed ? withAssertion(signed, all) : formOf(all);
    return proof ? postWithProof(url, form, dpop, proof) : read(postForm(url, form));
  }

  /** RFC 9126. Without a proof of possession unless the variation has one. */
  async function push(client: FapiClient, variation: Variation = {}) {
    const { verifier, challenge } = await pkce();
    const fields = { response_type: "code", ...requestWith(challenge) };
    const url = String(metadata.pushed_authorization_request_endpoint);
    const answer = await post(client, url, fields, { proof: null, ...variation });
    return { verifier, requestUri: String(answer.body.request_uri), answer };
  }

  async function open(
    client: Pick<Client, "id">,
    requestUri: string,
    {
      extra = {},
      button = "Allow",
      browser = new TestBrowser(issuer),
    }: { extra?: Fields; button?: string; browser?: TestBrowser } = {},
  ): Promise<URL> {
    const query = formOf({ client_id: client.id, request_uri: requestUri, ...extra });
    const page = await browser.open(`${metadata.authorization_endpoint}?${query}`);
    return (await follow(deployment, browser, page, button)).end;
  }

  const requestTokens = (client: FapiClient, fields: Fields, variation?: Variation) =>
    post(client, String(metadata.token_endpoint), fields, variation);

  function redeem(client: FapiClient, code: string, code_verifier: string, variation?: Variation) {
    const fields = { grant_type: "authorization_code", code, redirect_uri: REDIRECT_URI, code_verifier };
    return requestTokens(client, fields, variation);
  }

  const refresh = (client: FapiClient, refresh_token: string, variation?: Variation) =>
    requestTokens(client, { grant_type: "refresh_token", refresh_token }, variation);

  async function prepare(
    client: FapiClient,
    { parameters = {}, assertion = {}, proof = {}, isBoundEarly = false }: Choices = {},
  ) {
    const authentication = oidc.PrivateKeyJwt(client.privateKey, withClaims(assertion));
    const config = await oidc.discovery(new URL(issuer), client.id, undefined, authentication, {
      execute: [oidc.allowInsecureRequests],
    });
    const DPoP = oidc.getDPoPHandle(config, client.dpop, withClaims(proof));
    const { verifier, challenge } = await pkce();
    const sent = formOf({ ...requestWith(challenge), ...parameters });
    const url = await oidc.buildAuthorizationUrlWithPAR(config, sent, isBoundEarly ? { DPoP } : {});
    const state = sent.get("state") ?? undefined;
    return { config, DPoP, verifier, state, requestUri: String(url.searchParams.get("request_uri")) };
  }
  type Prepared = Awaited<ReturnType<typeof prepare>>;

  function exchange({ config, DPoP, verifier, state }: Prepared, end: URL) {
    const checks = { pkceCodeVerifier: verifier, ...(state !== undefined && { expectedState: state }) };
    return oidc.authorizationCodeGrant(config, end, checks, undefined, { DPoP });
  }

  async function fetchLinks({ config, DPoP }: Prepared, token: string): Promise<number> {
    const url = new URL(`${issuer}/v1/links`);
    return (await oidc.fetchProtectedResource(config, token, url, "GET", null, undefined, { DPoP })).status;
  }

  async function codeOf(client: FapiClient, choices?: Choices) {
    const prepared = await prepare(client, choices);
    const end = await open(client, prepared.requestUri);
    return { ...prepared, code: end.searchParams.get("code") ?? "", end };
  }

  async function tokensOf(client: FapiClient) {
    const authorized = await codeOf(client);
    return { ...authorized, ...(await exchange(authorized, authorized.end)) };
  }

  async function call(
    { dpop }: FapiClient,
    token: unknown,
    {
      scheme = "DPoP",
      proof = {},
      key = dpop,
    }: { scheme?: string; proof?: Proof | null; key?: DpopKey } = {},
  ): Promise<number> {
    const htu = `${issuer}/v1/links`;
    const claims = { htm: "GET", htu, ath: athOf(String(token)), ...proof?.claims };
    const headers = proof && { dpop: await signProof(key, { ...proof, claims }) };
    return (await fetch(htu, { headers: { authorization: `${scheme} ${token}`, ...headers } })).status;
  }

  return { push, open, redeem, refresh, call, prepare, exchange, fetchLinks, codeOf, tokensOf };
}
