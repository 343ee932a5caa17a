import test from "ava";
import { codeFor, runCodeFlow, shareApp } from "../harness/clients/authorization.ts";
import { outcomeOf, postAsClient, RESOURCE_SERVER } from "../harness/clients/oauth.ts";
import { advanceClock } from "../harness/clock.ts";
import { startTestService } from "../harness/service.ts";

const { clientSecret: SECRET } = RESOURCE_SERVER;
const { service, app, own, user, other } = await shareApp({ RESOURCE_SERVER_SECRET: SECRET });

const HINTS = [undefined, "access_token", "refresh_token", "bogus"];
const INACTIVE = { active: false };
const introspect = async (token: string, client = app, hint?: string) => {
  const { status, body } = await postAsClient(service, "introspect", client, {
    token,
    token_type_hint: hint,
  });
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body;
};

test("a client sees its own token", async (t) => {
  const before = Math.floor(Date.now() / 1000);
  const { exp, ...body } = await introspect(await service.token(app, { scope: "links:read" }));
  const { clientId: client_id } = app;
  const { url } = service;
  const own = { active: true, client_id, sub: client_id, iss: url, aud: url };
  t.like(body, { ...own, scope: "links:read", token_type: "Bearer" });
  t.true(Number(exp) >= before + 3600 && Number(exp) <= Math.ceil(Date.now() / 1000) + 3600);
});

for (const hint of HINTS)
  test(`a client's tokens of every kind are found with the hint ${hint}, by no other client`, async (t) => {
    const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
    for (const token of [accessToken, refreshToken, await service.token(app)]) {
      t.true((await introspect(token, app, hint)).active, token);
      t.deepEqual(await introspect(token, other.app, hint), INACTIVE);
    }
    t.true((await introspect(accessToken, RESOURCE_SERVER, hint)).active);
  });

const JWT = "eyJhbGciOiJSUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl";
const UNKNOWN = [JWT, "a.b.c.d.e", "x", "lga_x", "lgr_x", "\u0000", "é", "x".repeat(10_000), "dashboard"];

for (const token of UNKNOWN)
  test(`the response for ${JSON.stringify(token.slice(0, 40))} is exactly {"active":false} for every caller`, async (t) => {
    for (const client of [app, RESOURCE_SERVER]) t.deepEqual(await introspect(token, client), INACTIVE);
  });

test.serial('the response for expired and revoked tokens is exactly {"active":false}', async (t) => {
  const revoked = await runCodeFlow(service, app, user);
  await postAsClient(service, "revoke", app, { token: revoked.accessToken });
  const own = await service.token(app);
  await postAsClient(service, "revoke", app, { token: own });
  const expired = await service.token(app);
  const old = await runCodeFlow(service, app, user);
  advanceClock(3601_000);
  for (const token of [revoked.accessToken, revoked.refreshToken, own, expired, old.accessToken])
    for (const client of [app, RESOURCE_SERVER]) t.deepEqual(await introspect(token, client), INACTIVE);
  t.true((await introspect(old.refreshToken)).active);
});

test("a code is inactive for every caller", async (t) => {
  const code = await codeFor(service, app, user);
  for (const client of [app, RESOURCE_SERVER]) t.deepEqual(await introspect(code, client), INACTIVE);
});

test("only resource-server sees every access token, with the organization and its plan", async (t) => {
  const { accessToken } = await runCodeFlow(service, app, user);
  const delegated = { active: true, client_id: app.clientId, sub: user.id, organization_id: own.id };
  t.like(await introspect(accessToken, RESOURCE_SERVER), { ...delegated, plan: "growth" });
  const premium = await service.createOrganization(undefined, "premium");
  const byClient = await introspect(await service.token(premium), RESOURCE_SERVER);
  t.like(byClient, { organization_id: premium.id, plan: "premium" });
  const body = await introspect(accessToken);
  t.false("organization_id" in body);
  t.false("plan" in body);
});

test("resource-server sees no refresh tokens, and can neither request nor revoke tokens", async (t) => {
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  for (const hint of [undefined, "refresh_token"])
    t.deepEqual(await introspect(refreshToken, RESOURCE_SERVER, hint), INACTIVE, String(hint));
  const requested = postAsClient(service, "token", RESOURCE_SERVER, { grant_type: "client_credentials" });
  t.is(await outcomeOf(requested), "400 unauthorized_client");
  await postAsClient(service, "revoke", RESOURCE_SERVER, { token: accessToken });
  t.true((await introspect(accessToken)).active);
});

test("resource-server must authenticate with its secret", async (t) => {
  const { accessToken } = await runCodeFlow(service, app, user);
  for (const clientSecret of ["x", SECRET.slice(0, -1), `${SECRET}x`, "kept-as-a-hash"]) {
    const client = { ...RESOURCE_SERVER, clientSecret };
    const answer = postAsClient(service, "introspect", client, { token: accessToken });
    t.is(await outcomeOf(answer), "401 invalid_client");
  }
});

test("without RESOURCE_SERVER_SECRET the client resource-server does not exist", async (t) => {
  const plain = await startTestService();
  t.is((await postAsClient(plain, "introspect", RESOURCE_SERVER, { token: "x" })).status, 401);
});
