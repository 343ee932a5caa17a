import { randomUUID } from "node:crypto";
import test from "ava";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { postAsClient, read } from "../harness/clients/oauth.ts";
import { createTrustingOrganization, exchange } from "../harness/clients/workload.ts";
import { PRODUCTION } from "../harness/production.ts";
import { providerSettings } from "../harness/providers/identity-provider.ts";
import { githubClaims } from "../harness/providers/token-issuer.ts";
import { startPublisher } from "../harness/publisher.ts";
import { OPERATOR, postForm, startTestService } from "../harness/service.ts";

const PROVIDER = "https://idp.example";
const ISSUER = "https://issuer.example";
const DISCOVERY = "/.well-known/openid-configuration";

// Only the identity provider is private: the operator chose it, and no user may make the server connect to it.
const publisher = await startPublisher(["idp.example", "issuer.example"]);
const service = await startTestService(
  {
    ...providerSettings(PROVIDER),
    ...PRODUCTION,
    RATE_LIMIT: "on",
    CIMD: "any",
    WEBHOOK_ALLOW_HOSTS: "issuer.example",
  },
  publisher.connections,
);
const { publicKey, privateKey } = await generateKeyPair("ES256");
const jwk = { ...(await exportJWK(publicKey)), kid: "1", alg: "ES256" };
const sign = (claims: object, typ: string) =>
  new SignJWT({ ...claims }).setProtectedHeader({ alg: "ES256", kid: "1", typ }).sign(privateKey);

publisher.publish(`${PROVIDER}/jwks`, { body: { keys: [jwk] } });
publisher.publish(PROVIDER + DISCOVERY, { body: { issuer: PROVIDER, jwks_uri: `${PROVIDER}/jwks` } });
test.beforeEach(() => void publisher.requests.splice(0));

test.serial("keys of an issuer that an organization named are not fetched from it", async (t) => {
  publisher.publish(ISSUER + DISCOVERY, { body: { issuer: ISSUER, jwks_uri: `${PROVIDER}/jwks` } });
  const organization = await createTrustingOrganization(service, { issuer: ISSUER });
  const token = await sign(githubClaims(ISSUER, service.url), "JWT");
  t.is((await exchange(service, organization, "grant", token)).body.error, "invalid_grant");
  t.deepEqual(publisher.requests, [ISSUER + DISCOVERY]);
});

test.serial("metadata documents of clients are not fetched from it", async (t) => {
  const client_id = `${PROVIDER}/client.json`;
  publisher.publish(client_id, { body: { client_id, redirect_uris: ["https://agent.example/callback"] } });
  const fields = { grant_type: "authorization_code", client_id, code: "a" };
  t.is((await read(postForm(`${service.url}/oauth/token`, fields))).body.error, "invalid_client");
  t.deepEqual(publisher.requests, []);
});

test.serial("its own keys are fetched from it", async (t) => {
  const app = await service.createOrganization();
  const own = await service.createOrganization();
  await service.storage.organizationSettings.change(own.id, { enterpriseAuthorization: true }, OPERATOR);
  const user = await service.createUser([own.id]);
  const subject = randomUUID();
  await service.storage.identities.link(user.id, { issuer: PROVIDER, subject, label: null }, OPERATOR);
  const iat = Math.floor(Date.now() / 1000);
  const claims = { iss: PROVIDER, sub: subject, aud: service.url, client_id: app.clientId, iat };
  const assertion = await sign({ ...claims, jti: randomUUID(), exp: iat + 300 }, "oauth-id-jag+jwt");
  const grant_type = "urn:ietf:params:oauth:grant-type:jwt-bearer";
  const answer = await postAsClient(service, "token", app, { grant_type, assertion });
  t.is(answer.status, 200, answer.text);
  t.deepEqual(publisher.requests, [PROVIDER + DISCOVERY, `${PROVIDER}/jwks`]);
});
