import test from "ava";
import { decodeJwt } from "jose";
import { allow } from "../harness/clients/authorization.ts";
import { withAssertion } from "../harness/clients/client-key.ts";
import {
  authorizeUrlOf,
  connectDocument,
  createSigningKey,
  type DocumentClient,
  postAsDocument,
  signAssertion,
} from "../harness/clients/document-client.ts";
import { createDpopKey, postWithProof } from "../harness/clients/dpop.ts";
import { isAcceptedByApi, outcomeOf, redemptionOf } from "../harness/clients/oauth.ts";
import { startPublisher } from "../harness/publisher.ts";
import { OPERATOR, startTestService } from "../harness/service.ts";

const DOCUMENT = "https://agent.example/client.json";
const KEYS = "https://agent.example/jwks.json";

const publisher = await startPublisher(["agent.example"]);
const service = await startTestService({ ...publisher.settings, CIMD: "any" }, publisher.connections);
const redirect_uri = "https://agent.example/callback";
const key = await createSigningKey();
const client: DocumentClient = { clientId: DOCUMENT, redirectUri: redirect_uri, key };
function publish(client_id: string, changes: object = {}): void {
  const document = {
    client_id,
    redirect_uris: [redirect_uri],
    grant_types: ["authorization_code", "refresh_token"],
    token_endpoint_auth_method: "private_key_jwt",
    jwks_uri: KEYS,
  };
  publisher.publish(client_id, { body: { ...document, ...changes } });
}
publish(DOCUMENT);
publisher.publish(KEYS, { body: { keys: [key.jwk] } });

const organization = await service.createOrganization();
await service.storage.organizationSettings.change(organization.id, { allowedClients: "any" }, OPERATOR);
const user = await service.createUser([organization.id]);

const refresh = (token: string) =>
  postAsDocument(service, "token", client, { grant_type: "refresh_token", refresh_token: token });

test.serial("a client that authenticates by assertions gets, refreshes and revokes tokens", async (t) => {
  const { accessToken, refreshToken } = await connectDocument(service, client, user);
  t.true(await isAcceptedByApi(service, accessToken));
  const { status, body } = await refresh(refreshToken);
  t.is(status, 200);
  t.is((await postAsDocument(service, "revoke", client, { token: String(body.access_token) })).status, 200);
  t.false(await isAcceptedByApi(service, String(body.access_token)));
  t.false(await isAcceptedByApi(service, accessToken));
});

test.serial("three token requests fetch the document and the keys once each", async (t) => {
  const fresh = await startTestService({ ...publisher.settings, CIMD: "any" }, publisher.connections);
  const own = await fresh.createOrganization();
  await fresh.storage.organizationSettings.change(own.id, { allowedClients: "any" }, OPERATOR);
  publisher.requests.length = 0;
  let { refreshToken } = await connectDocument(fresh, client, await fresh.createUser([own.id]));
  for (let request = 0; request < 2; request++) {
    const fields = { grant_type: "refresh_token", refresh_token: refreshToken };
    const { status, body } = await postAsDocument(fresh, "token", client, fields);
    t.is(status, 200);
    refreshToken = String(body.refresh_token);
  }
  t.deepEqual(publisher.requests.toSorted(), [DOCUMENT, KEYS]);
});

test.serial("an assertion of another key, for another server, or none at all is rejected", async (t) => {
  const callback = await allow(service, user, authorizeUrlOf(service, client));
  const code = callback.searchParams.get("code") ?? "";
  const redeem = (by: DocumentClient, fields: Record<string, string> = {}) =>
    postAsDocument(service, "token", by, { ...redemptionOf(code), redirect_uri, ...fields });
  const elsewhere = await signAssertion({ ...service, url: "https://other.example" }, client);
  t.is(decodeJwt(elsewhere).aud, "https://other.example");
  const { key: _, ...keyless } = client;
  for (const refused of [
    redeem({ ...client, key: await createSigningKey() }),
    redeem(client, { client_assertion: elsewhere }),
    redeem(keyless),
    redeem(keyless, { client_secret: "kept-as-a-hash" }),
  ])
    t.is(await outcomeOf(refused), "401 invalid_client");
  // None of them has used the code.
  t.is((await redeem(client)).status, 200);
});

test.serial("the only algorithm that a document allows is required", async (t) => {
  const clientId = "https://agent.example/strict.json";
  const [key, other] = [await createSigningKey("ES384"), await createSigningKey("RS256")];
  publish(clientId, {
    token_endpoint_auth_signing_alg: "ES384",
    jwks_uri: undefined,
    jwks: { keys: [key.jwk, other.jwk] },
  });
  const introspect = (by: typeof key) =>
    postAsDocument(service, "introspect", { ...client, clientId, key: by }, { token: "a" });
  t.is((await introspect(key)).status, 200);
  const { status, body } = await introspect(other);
  t.is(status, 401);
  t.is(body.error_description, "client_assertion is invalid: alg must be ES384");
});

test.serial("a client whose document requires DPoP gets no token without a proof", async (t) => {
  const bound = { ...client, clientId: "https://agent.example/bound.json" };
  const key = await createDpopKey();
  publish(bound.clientId, { dpop_bound_access_tokens: true });
  const callback = await allow(service, user, authorizeUrlOf(service, bound));
  const fields = { ...redemptionOf(callback.searchParams.get("code") ?? ""), redirect_uri };
  const withProof = async (more: Record<string, string>) => {
    const form = withAssertion(await signAssertion(service, bound), more);
    return postWithProof(`${service.url}/oauth/token`, form, key);
  };
  t.is((await postAsDocument(service, "token", bound, fields)).status, 400);
  const first = await withProof(fields);
  t.is(first.status, 200, first.text);
  t.is(first.body.token_type, "DPoP");
  const again = { grant_type: "refresh_token", refresh_token: String(first.body.refresh_token) };
  t.is((await postAsDocument(service, "token", bound, again)).status, 400);
  t.is((await withProof(again)).body.token_type, "DPoP");
});
