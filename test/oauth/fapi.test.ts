import test, { type ExecutionContext } from "ava";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { FapiConflict } from "../../adapters/oauth/clients.ts";
import { allow } from "../harness/clients/authorization.ts";
import {
  authorizeUrl,
  createApp,
  type Fields,
  formOf,
  REDIRECT_URI,
} from "../harness/clients/authorization-request.ts";
import { createKeyFor, type KeyPair, signAssertion, withAssertion } from "../harness/clients/client-key.ts";
import { createDpopKey, type DpopKey, postWithProof } from "../harness/clients/dpop.ts";
import type { Answer } from "../harness/clients/oauth.ts";
import { basic, read, redemptionOf } from "../harness/clients/oauth.ts";
import { bearer, OPERATOR, postForm, startTestService, type TestOrganization } from "../harness/service.ts";

const service = await startTestService();
const { clients } = service.storage;

const TOKEN = `${service.url}/oauth/token`;

type Client = { app: TestOrganization; alg: string; pair: KeyPair; dpop: DpopKey };

async function createFapiApp(alg = "ES256") {
  const created = await createApp(service);
  const pair = await createKeyFor(service, created.app, alg);
  await clients.removeSecrets(created.app.id, OPERATOR);
  await clients.setFapi(created.app.id, true, OPERATOR);
  return { ...created, alg, pair, dpop: await createDpopKey() };
}

type Request = { assertion?: string; fields?: Fields; url?: string };

/** Sends a request with a proof; without changes, it is one of client credentials that succeeds. */
async function request({ app, alg, pair, dpop }: Client, { assertion, fields, url = TOKEN }: Request) {
  const form = withAssertion(assertion ?? (await signAssertion(service, app, pair, {}, { alg })), fields);
  return postWithProof(url, form, dpop);
}

function refused(t: ExecutionContext, { status, body }: Answer, error: string, description: RegExp): void {
  t.is(status, error === "invalid_client" ? 401 : 400);
  t.is(body.error, error);
  t.regex(String(body.error_description), description);
}

for (const alg of ["PS256", "ES256", "EdDSA"])
  test(`a client that follows FAPI 2.0 with an ${alg} key gets an id_token that is signed with ES256`, async (t) => {
    const client = await createFapiApp(alg);
    const { app, user } = client;
    const { searchParams } = new URL(authorizeUrl(service, app, { scope: "openid" }));
    const fields = { ...Object.fromEntries(searchParams), grant_type: undefined };
    const { body: pushed } = await request(client, { fields, url: `${service.url}/oauth/par` });
    const query = formOf({ client_id: app.clientId, request_uri: String(pushed.request_uri) });
    const callback = await allow(service, user, `${service.url}/oauth/authorize?${query}`);
    const code = String(callback.searchParams.get("code"));
    const { body } = await request(client, { fields: redemptionOf(code) });
    const keys = createRemoteJWKSet(new URL(`${service.url}/oauth/jwks`));
    const { protectedHeader, payload } = await jwtVerify(String(body.id_token), keys);
    t.deepEqual([protectedHeader.alg, payload.sub], ["ES256", user.id]);
  });

test("a secret is refused, in the header and in the body", async (t) => {
  const { app } = await createFapiApp();
  const fields = { grant_type: "client_credentials", client_id: app.clientId };
  const description =
    /^client authentication failed: the client follows FAPI 2\.0 and must use private_key_jwt$/;
  refused(t, await read(postForm(TOKEN, fields, basic(app))), "invalid_client", description);
  const inBody = { ...fields, client_secret: app.clientSecret };
  refused(t, await read(postForm(TOKEN, inBody)), "invalid_client", description);
});

test("a request without a proof is refused, and bearer tokens from before are rejected", async (t) => {
  const { app } = await createApp(service);
  const pair = await createKeyFor(service, app);
  const form = async () => withAssertion(await signAssertion(service, app, pair));
  const { body } = await read(postForm(TOKEN, await form()));
  const call = () => fetch(`${service.url}/v1/links`, { headers: bearer(String(body.access_token)) });
  t.is((await call()).status, 200);
  await clients.removeSecrets(app.id, OPERATOR);
  await clients.setFapi(app.id, true, OPERATOR);
  t.is((await call()).status, 401);
  const without = await read(postForm(TOKEN, await form()));
  refused(t, without, "invalid_dpop_proof", /^the client requires DPoP: send a proof/);
  await clients.setFapi(app.id, false, OPERATOR);
  t.is((await call()).status, 200);
});

const ROTATION = { overlapMs: 0, compromised: false };
const conflict = (rule: string) => ({ instanceOf: FapiConflict, message: new RegExp(rule) });

test("a client without a key, with a secret or with a redirect URI without https can't follow FAPI 2.0", async (t) => {
  const { app } = await createApp(service, ["http://127.0.0.1/callback"]);
  const turnOn = () => clients.setFapi(app.id, true, OPERATOR);
  await t.throwsAsync(turnOn(), conflict("needs a public key"));
  await createKeyFor(service, app);
  await t.throwsAsync(turnOn(), conflict("must not have secrets. Remove them first"));
  await clients.removeSecrets(app.id, OPERATOR);
  await t.throwsAsync(turnOn(), conflict("only have https redirect URIs"));
  await clients.setRedirectUris(app.id, [REDIRECT_URI], OPERATOR);
  t.true(await turnOn());
  t.true((await clients.findByOrganization(app.id))?.fapi);
});

test("a client that follows FAPI 2.0 gets neither a secret nor a redirect URI without https", async (t) => {
  const { app } = await createFapiApp();
  const before = await clients.findByOrganization(app.id);
  await t.throwsAsync(clients.rotateSecret(app.id, ROTATION, OPERATOR), conflict("must not have secrets"));
  for (const uri of ["http://127.0.0.1/callback", "com.example.app:/callback"]) {
    const change = clients.setRedirectUris(app.id, [REDIRECT_URI, uri], OPERATOR);
    await t.throwsAsync(change, conflict("https redirect URIs"));
  }
  t.deepEqual(await clients.findByOrganization(app.id), before);
  await service.storage.organizations.setPlan(app.id, "free", OPERATOR);
  t.is((await service.storage.organizations.setPlan(app.id, "growth", OPERATOR))?.client, undefined);
});

test("the last key of a client that follows FAPI 2.0 can't be removed, not even a compromised one", async (t) => {
  const { app } = await createFapiApp();
  const keyIds = async () => (await clients.findByOrganization(app.id))?.keys.map(({ id }) => id) ?? [];
  const remove = (id: string, compromised = false) =>
    clients.removeKey(app.id, id, { compromised }, OPERATOR);
  const [first = ""] = await keyIds();
  for (const compromised of [false, true])
    await t.throwsAsync(remove(first, compromised), conflict("Add another one first, or turn FAPI 2.0 off"));
  await createKeyFor(service, app);
  t.true(await remove(first, true));
  for (let round = 0; round < 3; round++) {
    await createKeyFor(service, app);
    const results = await Promise.allSettled((await keyIds()).map((id) => remove(id)));
    t.deepEqual(results.map(({ status }) => status).sort(), ["fulfilled", "rejected"], `round ${round}`);
    t.is((await keyIds()).length, 1);
  }
  await clients.setFapi(app.id, false, OPERATOR);
  t.true(await remove((await keyIds())[0] as string));
});

test("of turning FAPI 2.0 on and creating a secret at the same time, one is refused", async (t) => {
  for (let round = 0; round < 3; round++) {
    const { app } = await createApp(service);
    await createKeyFor(service, app);
    await clients.removeSecrets(app.id, OPERATOR);
    const results = await Promise.allSettled([
      clients.setFapi(app.id, true, OPERATOR),
      clients.rotateSecret(app.id, ROTATION, OPERATOR),
    ]);
    t.is(results.filter(({ status }) => status === "rejected").length, 1);
    const client = await clients.findByOrganization(app.id);
    t.not(client?.fapi, client?.secrets.length === 1);
  }
});

test("tokens of workloads are refused", async (t) => {
  const client = await createFapiApp();
  const { app, pair } = client;
  const assertion = await signAssertion(service, app, pair, { iss: "https://issuer.example" });
  const answer = await request(client, { assertion, fields: { client_id: app.clientId } });
  refused(t, answer, "invalid_client", /an assertion that the client signed/);
});
