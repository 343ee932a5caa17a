import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { codeFor, createApp, postAsClient, refresh, runCodeFlow } from "../../harness/clients/oauth.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startTestService, type TestOrganization } from "../../harness/service.ts";

const SECRET = "a-secret-of-the-resource-server-0123456789";
const service = await startTestService({ RESOURCE_SERVER_SECRET: SECRET });
const { app, own, user } = await createApp(service);
const other = await createApp(service);
const resourceServer: TestOrganization = {
  id: "",
  name: "",
  clientId: "resource-server",
  clientSecret: SECRET,
};
test.after.always(() => service.close());

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
  const body = await introspect(await service.token(app, { scope: "links:read" }));
  const after = Math.ceil(Date.now() / 1000);
  t.true(body.active);
  t.is(body.client_id, app.clientId);
  t.is(body.scope, "links:read");
  t.is(body.token_type, "Bearer");
  t.is(body.iss, service.url);
  t.is(body.aud, service.url);
  t.true(Number(body.exp) >= before + 3600 && Number(body.exp) <= after + 3600);
});

test("a client sees the user who authorized its token", async (t) => {
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  t.is((await introspect(accessToken)).sub, user.id);
  const body = await introspect(refreshToken);
  t.true(body.active);
  t.is(body.client_id, app.clientId);
});

for (const hint of [undefined, "access_token", "refresh_token", "bogus"]) {
  test(`another client's tokens are inactive with the hint ${hint}`, async (t) => {
    const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
    for (const token of [accessToken, refreshToken, await service.token(app)]) {
      t.deepEqual(await introspect(token, other.app, hint), INACTIVE);
    }
  });
}

for (const hint of [undefined, "access_token", "refresh_token", "id_token", "bogus", ""]) {
  test(`a client's tokens of every kind are found with the hint ${JSON.stringify(hint)}`, async (t) => {
    const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
    for (const token of [accessToken, refreshToken, await service.token(app)]) {
      t.true((await introspect(token, app, hint)).active, token);
    }
    t.true((await introspect(accessToken, resourceServer, hint)).active);
  });
}

const JWT = "eyJhbGciOiJSUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl";
const INVALID_TOKENS = [
  JWT,
  "a.b.c",
  "..",
  "a.b.c.d.e",
  "x",
  "lga_x",
  "lgr_x",
  "\u0000",
  "é",
  "x".repeat(10_000),
  "dashboard",
];

for (const token of INVALID_TOKENS) {
  test(`the response for ${JSON.stringify(token.slice(0, 40))} is exactly {"active":false} for every caller`, async (t) => {
    for (const client of [app, resourceServer]) t.deepEqual(await introspect(token, client), INACTIVE);
  });
}

test.serial('the response for expired and revoked tokens is exactly {"active":false}', async (t) => {
  const revoked = await runCodeFlow(service, app, user);
  await postAsClient(service, "revoke", app, { token: revoked.accessToken });
  const own = await service.token(app);
  await postAsClient(service, "revoke", app, { token: own });
  const expired = await service.token(app);
  const old = await runCodeFlow(service, app, user);
  advanceClock(3601_000);
  for (const token of [revoked.accessToken, revoked.refreshToken, own, expired, old.accessToken]) {
    for (const client of [app, resourceServer]) t.deepEqual(await introspect(token, client), INACTIVE);
  }
  t.true((await introspect(old.refreshToken)).active);
});

test.serial(
  "a rotated refresh token is inactive after the retry window, and a code is always inactive",
  async (t) => {
    const { refreshToken } = await runCodeFlow(service, app, user);
    advanceClock(22 * 24 * 3600_000);
    const { body } = await refresh(service, app, refreshToken);
    advanceClock(11_000);
    t.deepEqual(await introspect(refreshToken), INACTIVE);
    t.true((await introspect(String(body.refresh_token))).active);
    const code = await codeFor(service, app, user);
    for (const client of [app, resourceServer]) t.deepEqual(await introspect(code, client), INACTIVE);
  },
);

test("resource-server sees every access token, with the organization and its plan", async (t) => {
  const { accessToken } = await runCodeFlow(service, app, user);
  const delegated = await introspect(accessToken, resourceServer);
  t.true(delegated.active);
  t.is(delegated.client_id, app.clientId);
  t.is(delegated.sub, user.id);
  t.is(delegated.organization_id, own.id);
  t.is(delegated.plan, "growth");
  const premium = await service.createOrganization(undefined, "premium");
  const byClient = await introspect(await service.token(premium), resourceServer);
  t.is(byClient.organization_id, premium.id);
  t.is(byClient.plan, "premium");
});

test("only resource-server sees the organization and its plan", async (t) => {
  const { accessToken } = await runCodeFlow(service, app, user);
  const body = await introspect(accessToken);
  t.false("organization_id" in body);
  t.false("plan" in body);
});

test("resource-server sees no refresh tokens", async (t) => {
  const { refreshToken } = await runCodeFlow(service, app, user);
  for (const hint of [undefined, "refresh_token"]) {
    t.deepEqual(await introspect(refreshToken, resourceServer, hint), INACTIVE, String(hint));
  }
});

for (const which of ["client", "user"] as const) {
  test(`after a downgrade of the ${which}'s organization its tokens are inactive, except for resource-server`, async (t) => {
    const mine = await createApp(service);
    const { accessToken, refreshToken } = await runCodeFlow(service, mine.app, mine.user);
    const token = which === "client" ? await service.token(mine.app) : accessToken;
    const id = which === "client" ? mine.app.id : mine.own.id;
    await service.storage.organizations.setPlan(id, "free", OPERATOR);
    for (const one of [token, accessToken]) {
      t.deepEqual(await introspect(one, mine.app), INACTIVE);
      const seen = await introspect(one, resourceServer);
      t.true(seen.active);
      t.is(seen.plan, "free");
    }
    t.deepEqual(await introspect(refreshToken, mine.app), INACTIVE);
    await service.storage.organizations.setPlan(id, "premium", OPERATOR);
    t.true((await introspect(token, mine.app)).active);
    t.true((await introspect(refreshToken, mine.app)).active);
  });
}

test("resource-server can introspect tokens but neither request nor revoke them", async (t) => {
  const { accessToken } = await runCodeFlow(service, app, user);
  const token = await postAsClient(service, "token", resourceServer, { grant_type: "client_credentials" });
  t.is(token.body.error, "unauthorized_client");
  await postAsClient(service, "revoke", resourceServer, { token: accessToken });
  t.true((await introspect(accessToken)).active);
});

test("resource-server must authenticate with its secret", async (t) => {
  const { accessToken } = await runCodeFlow(service, app, user);
  for (const clientSecret of ["x", SECRET.slice(0, -1), `${SECRET}x`, "kept-as-a-hash"]) {
    const { status, body } = await postAsClient(
      service,
      "introspect",
      { ...resourceServer, clientSecret },
      { token: accessToken },
    );
    t.is(status, 401);
    t.is(body.error, "invalid_client");
  }
});

test("introspection without a token is rejected with invalid_request", async (t) => {
  t.is((await postAsClient(service, "introspect", app, {})).body.error, "invalid_request");
});

test("without RESOURCE_SERVER_SECRET the client resource-server does not exist", async (t) => {
  const plain = await startTestService();
  t.teardown(() => plain.close());
  const { status } = await postAsClient(plain, "introspect", resourceServer, { token: "x" });
  t.is(status, 401);
});
