import test from "ava";
import { codeFor, runCodeFlow, shareApp } from "../harness/clients/authorization.ts";
import { createApp, type Fields, formOf } from "../harness/clients/authorization-request.ts";
import { athOf, createDpopKey, postWithProof, requestWithProof, signProof } from "../harness/clients/dpop.ts";
import {
  type Answer,
  outcomeOf,
  postAsClient,
  RESOURCE_SERVER,
  read,
  redeemCode,
  redemptionOf,
  refresh,
  register,
} from "../harness/clients/oauth.ts";
import { bearer, OPERATOR, postForm } from "../harness/service.ts";

const { service, own, user } = await shareApp({
  RESOURCE_SERVER_SECRET: RESOURCE_SERVER.clientSecret,
  DYNAMIC_REGISTRATION: "stateless",
});
const [key, otherKey] = await Promise.all([createDpopKey(), createDpopKey()]);
const { organizationSettings } = service.storage;

const requireDpop = (organization: { id: string }, required = true) =>
  organizationSettings.change(organization.id, { requiresDpop: required }, OPERATOR);
const callApi = (token: unknown) =>
  read(fetch(`${service.url}/v1/links`, { headers: bearer(String(token)) }));

async function callWithProof(token: unknown, htu = `${service.url}/v1/links`) {
  const dpop = await signProof(key, { claims: { htm: "GET", htu, ath: athOf(String(token)) } });
  return read(fetch(htu, { headers: { authorization: `DPoP ${token}`, dpop } }));
}

const DESCRIPTION = "the organization requires DPoP: send a proof in the DPoP header";
const isRefused = ({ status, body }: Answer) =>
  status === 400 && body.error === "invalid_dpop_proof" && body.error_description === DESCRIPTION;

test("the client of an organization that requires DPoP gets bound tokens only", async (t) => {
  const app = await service.createOrganization();
  await requireDpop(app);
  const request = () => postAsClient(service, "token", app, { grant_type: "client_credentials" });
  t.true(isRefused(await request()));
  const { body } = await requestWithProof(service, app, key);
  t.is(body.token_type, "DPoP");
  t.is((await callWithProof(body.access_token)).status, 200);
  await requireDpop(app, false);
  t.is((await request()).body.token_type, "Bearer");
});

for (const [which, index] of [
  ["of the client", "app"],
  ["that the app acts for", "own"],
] as const) {
  test(`if the organization ${which} requires DPoP, a code is redeemed with a proof, and survives without`, async (t) => {
    const made = await createApp(service);
    const { app, user } = made;
    await requireDpop(made[index]);
    const code = await codeFor(service, app, user);
    t.true(isRefused(await redeemCode(service, app, code)));
    const fields = redemptionOf(code);
    const { status, body, text } = await requestWithProof(service, app, key, { fields });
    t.is(status, 200, text);
    t.is((await callWithProof(body.access_token)).status, 200);
    const refresh_token = String(body.refresh_token);
    t.true(isRefused(await refresh(service, app, refresh_token)));
    const again = { grant_type: "refresh_token", refresh_token };
    const refreshed = await requestWithProof(service, app, key, { fields: again });
    t.is(refreshed.status, 200, refreshed.text);
    t.is((await callWithProof(refreshed.body.access_token)).status, 200);
  });

  test(`if the organization ${which} requires DPoP, earlier bearer tokens are refused everywhere`, async (t) => {
    const made = await createApp(service);
    const { app, user } = made;
    const token = (await runCodeFlow(service, app, user)).accessToken;
    t.is((await callApi(token)).status, 200);
    await requireDpop(made[index]);

    const refused = await callApi(token);
    t.is(refused.status, 401);
    t.is(refused.body.code, "invalid_token");
    t.regex(String(refused.body.detail), /requires DPoP/);
    t.is((await callWithProof(token)).status, 401);
    for (const client of [app, RESOURCE_SERVER])
      t.deepEqual((await postAsClient(service, "introspect", client, { token })).body, { active: false });

    await requireDpop(made[index], false);
    t.is((await callApi(token)).status, 200);
    t.true((await postAsClient(service, "introspect", app, { token })).body.active);
  });
}

test("another client doesn't learn that a code needs a proof", async (t) => {
  const [{ app, own, user }, other] = [await createApp(service), await createApp(service)];
  const code = await codeFor(service, app, user);
  await requireDpop(own);
  t.is((await redeemCode(service, other.app, code)).body.error, "invalid_grant");
});

test("claims are read with a proof", async (t) => {
  const { app, own, user } = await createApp(service);
  const changes = { scope: "openid" };
  const unbound = (await runCodeFlow(service, app, user, { changes })).accessToken;
  const fields = redemptionOf(await codeFor(service, app, user, { changes }));
  const token = String((await requestWithProof(service, app, key, { fields })).body.access_token);
  const htu = `${service.url}/oauth/userinfo`;
  const bare = async (one: string) => (await fetch(htu, { headers: bearer(one) })).status;
  t.is(await bare(unbound), 200);
  t.is(await bare(token), 401);
  await requireDpop(own);
  t.is(await bare(unbound), 401);
  const answer = await callWithProof(token, htu);
  t.is(answer.status, 200, answer.text);
  t.is(answer.body.sub, user.id);
});

test("a client may always revoke, with or without a proof", async (t) => {
  const app = await service.createOrganization();
  const token = await service.token(app);
  await requireDpop(app);
  t.is((await postAsClient(service, "revoke", app, { token })).status, 200);
  await requireDpop(app, false);
  t.is((await callApi(token)).status, 401);
});

const CALLBACK = "http://127.0.0.1/callback";
const TOKEN_URL = `${service.url}/oauth/token`;

const requestTokens = (fields: Fields, signer?: typeof key) =>
  signer ? postWithProof(TOKEN_URL, formOf(fields), signer) : read(postForm(TOKEN_URL, formOf(fields)));

async function connectPublic(signer?: typeof key) {
  const { clientId: client_id } = await register(service, { redirect_uris: [CALLBACK] });
  const changes = { redirect_uri: CALLBACK };
  const code = await codeFor(service, { clientId: client_id }, user, { changes });
  const fields = { ...redemptionOf(code), client_id, redirect_uri: CALLBACK };
  const { status, body, text } = await requestTokens(fields, signer);
  if (status !== 200) throw new Error(text);
  return { client_id, grant_type: "refresh_token", refresh_token: String(body.refresh_token) };
}

test("the refresh token of a public client is bound to the key of its proof", async (t) => {
  const request = await connectPublic(key);
  for (const signer of [undefined, otherKey])
    t.is(await outcomeOf(requestTokens(request, signer)), "400 invalid_grant");
  const rotated = await requestTokens(request, key);
  t.is(rotated.status, 200, rotated.text);
  const next = { ...request, refresh_token: String(rotated.body.refresh_token) };
  t.not(next.refresh_token, request.refresh_token);
  t.is((await requestTokens(next, otherKey)).body.error, "invalid_grant");
  t.is((await requestTokens(next, key)).status, 200);
});

test.serial("an unbound refresh token of a public client ends where DPoP becomes required", async (t) => {
  const [unbound, bound] = [await connectPublic(), await connectPublic(key)];
  await requireDpop(own);
  t.is((await requestTokens(unbound)).body.error, "invalid_dpop_proof");
  t.is((await requestTokens(unbound, key)).body.error, "invalid_grant");
  t.is((await requestTokens(bound, key)).status, 200);
  await requireDpop(own, false);
  t.is((await requestTokens(unbound)).status, 200, "nothing was used up");
});
