import { randomBytes } from "node:crypto";
import test from "ava";
import * as oidc from "openid-client";
import { openDatabase } from "../../../adapters/database/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { firstPartyToken } from "../../harness/clients/dashboard.ts";
import { authorize, discover } from "../../harness/clients/flow.ts";
import {
  createApp,
  formOf,
  isAcceptedByApi,
  postAsClient,
  read,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { bearer, postForm, startTestService } from "../../harness/service.ts";

const ORIGIN = "https://console.example.com";
const database = await createTestDatabase();
const service = await startTestService({
  ALLOWED_ORIGINS: ORIGIN,
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
const { knex, close } = openDatabase(database.url);
const { app, own, user } = await createApp(service);

test.after.always(async () => {
  await close();
  await service.close();
  await database.drop();
});

const URL_OF_USERINFO = `${service.url}/oauth/userinfo`;
const userinfo = (token: unknown, init: RequestInit = {}) =>
  read(fetch(URL_OF_USERINFO, { ...init, headers: { ...bearer(String(token)), ...init.headers } }));
const tokensWith = (scope: string, changes = {}) =>
  runCodeFlow(service, app, user, { changes: { scope, ...changes } });
const CLAIMS = { sub: user.id, preferred_username: user.username, organization_id: own.id };

test("openid-client gets the claims of the id_token, after checking the subject", async (t) => {
  const flow = await authorize(service, app, user, { parameters: { scope: "openid" } });
  const config = await discover(service, app);
  const tokens = await oidc.authorizationCodeGrant(config, flow.callback, {
    pkceCodeVerifier: flow.verifier,
    expectedState: flow.state,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  const received = await oidc.fetchUserInfo(config, tokens.access_token, String(claims?.sub));
  t.deepEqual({ ...received }, CLAIMS);
  t.like(claims, CLAIMS);
});

for (const resource of [undefined, service.url, service.urls.api, service.urls.mcp]) {
  test(`a token for ${resource?.replace(service.url, "$BASE_URL") ?? "no resource"} gets the claims`, async (t) => {
    const tokens = await tokensWith("openid links:read", { resource });
    const { status, headers, body } = await userinfo(tokens.accessToken);
    t.is(status, 200);
    t.deepEqual(body, CLAIMS);
    t.regex(headers.get("content-type") ?? "", /^application\/json/);
    t.is(headers.get("cache-control"), "no-store");
  });
}

test("GET and POST are answered, also with the token in the body", async (t) => {
  const { accessToken } = await tokensWith("openid links:read");
  t.deepEqual((await userinfo(accessToken, { method: "POST" })).body, CLAIMS);
  t.deepEqual((await read(postForm(URL_OF_USERINFO, { access_token: accessToken }))).body, CLAIMS);
  const head = await fetch(URL_OF_USERINFO, { method: "HEAD", headers: bearer(accessToken) });
  t.is(head.status, 200);
  for (const method of ["PUT", "PATCH", "DELETE"]) {
    t.is((await userinfo(accessToken, { method })).status, 405, method);
  }
});

test("introspection and the token response name openid among the scopes of the token", async (t) => {
  const code = await runCodeFlow(service, app, user, { changes: { scope: "openid links:read" } });
  const { body } = await refresh(service, app, code.refreshToken);
  t.is(body.scope, "openid links:read");
  const introspected = await postAsClient(service, "introspect", app, { token: String(body.access_token) });
  t.is(introspected.body.scope, "openid links:read");
  t.true(await isAcceptedByApi(service, body.access_token));
});

test("a token without openid gets 403 insufficient_scope", async (t) => {
  const narrowed = await tokensWith("openid links:read");
  const { body } = await refresh(service, app, narrowed.refreshToken, { scope: "links:read" });
  for (const token of [
    (await tokensWith("links:read")).accessToken,
    body.access_token,
    await service.token(app), // client credentials
  ]) {
    const { status, headers, body } = await userinfo(token);
    t.is(status, 403);
    t.is(body.error, "insufficient_scope");
    const challenge = headers.get("www-authenticate") ?? "";
    t.regex(challenge, /^Bearer .*error="insufficient_scope"/);
    t.regex(challenge, /scope="openid"/);
  }
  const again = await refresh(service, app, narrowed.refreshToken, { scope: "openid" });
  t.is((await userinfo(again.body.access_token)).status, 200);
});

test("a request without a token gets 401 and a challenge without an error", async (t) => {
  const { status, headers } = await read(fetch(URL_OF_USERINFO));
  t.is(status, 401);
  const dpop = `DPoP realm="${service.url}", algs="ES256 Ed25519 EdDSA"`; // RFC 9449 §7.2
  t.is(headers.get("www-authenticate"), `Bearer realm="${service.url}", ${dpop}`);
});

test("a token in the query is rejected with 400", async (t) => {
  const { accessToken } = await tokensWith("openid links:read");
  const { status, headers, body } = await read(
    fetch(`${URL_OF_USERINFO}?${formOf({ access_token: accessToken })}`),
  );
  t.is(status, 400);
  t.is(body.error, "invalid_request");
  t.regex(headers.get("www-authenticate") ?? "", /error="invalid_request"/);
});

type Setup = Awaited<ReturnType<typeof createApp>> & { token: string; refreshToken: string };
const INVALID: [what: string, spoil: (setup: Setup) => Promise<string>][] = [
  ["an unknown token", async () => "lga_unknown"],
  ["a truncated token", async ({ token }) => token.slice(0, -1)],
  ["a refresh token", async ({ refreshToken }) => refreshToken],
  ["a first-party token", async ({ user }) => firstPartyToken(service, user)],
  [
    "a revoked token",
    async ({ app, token }) => {
      await postAsClient(service, "revoke", app, { token });
      return token;
    },
  ],
  [
    "the token of a disabled user",
    async ({ user, token }) => {
      // The service can't disable a user yet.
      await knex("users").where({ id: user.id }).update({ disabled_at: Date.now() });
      return token;
    },
  ],
  [
    "the token of a user who left the organization",
    async ({ own, user, token }) => {
      await service.createUser([own.id], undefined, "owner");
      await service.storage.members.remove({
        organizationId: own.id,
        userId: user.id,
        manageableRoles: ["owner"],
        actor: OPERATOR,
      });
      return token;
    },
  ],
  [
    "the token of an organization on the Free plan",
    async ({ own, token }) => {
      await service.storage.organizations.setPlan(own.id, "free", OPERATOR);
      return token;
    },
  ],
  [
    "the token of a client on the Free plan",
    async ({ app, token }) => {
      await service.storage.organizations.setPlan(app.id, "free", OPERATOR);
      return token;
    },
  ],
];

for (const [what, spoil] of INVALID) {
  test(`${what} gets 401 invalid_token`, async (t) => {
    const setup = await createApp(service);
    const tokens = await runCodeFlow(service, setup.app, setup.user, {
      changes: { scope: "openid links:read" },
    });
    t.is((await userinfo(tokens.accessToken)).status, 200);
    const token = await spoil({ ...setup, token: tokens.accessToken, refreshToken: tokens.refreshToken });
    const { status, headers, body } = await userinfo(token);
    t.is(status, 401);
    t.is(body.error, "invalid_token");
    t.is(body.sub, undefined);
    t.regex(headers.get("www-authenticate") ?? "", /^Bearer .*error="invalid_token"/);
  });
}

test.serial("an expired token gets 401 invalid_token", async (t) => {
  const tokens = await tokensWith("openid");
  advanceClock(3601_000);
  t.is((await userinfo(tokens.accessToken)).body.error, "invalid_token");
});

test("a user whose role lost all API scopes of the token still gets the claims", async (t) => {
  const setup = await createApp(service);
  const second = await service.createUser([setup.own.id], undefined, "owner");
  const changes = { scope: "openid webhooks:read" };
  const tokens = await runCodeFlow(service, setup.app, second, { changes });
  await service.storage.members.changeRole({
    organizationId: setup.own.id,
    userId: second.id,
    role: "member",
    manageableRoles: ["owner"],
    actor: OPERATOR,
  });
  t.is((await userinfo(tokens.accessToken)).body.sub, second.id);
});

test("scripts of allowed origins can read the response, others can't", async (t) => {
  const { accessToken } = await tokensWith("openid links:read");
  for (const [origin, allowed] of [
    [ORIGIN, true],
    [service.url, true],
    ["https://evil.example", false],
    ["null", false],
  ] as const) {
    const { headers } = await userinfo(accessToken, { headers: { origin } });
    t.is(headers.get("access-control-allow-origin"), allowed ? origin : null, origin);
    t.is(headers.get("access-control-allow-credentials"), null);
    const preflight = await fetch(URL_OF_USERINFO, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "GET",
        "access-control-request-headers": "authorization",
      },
    });
    t.is(preflight.status, 204);
    t.is(preflight.headers.get("access-control-allow-origin"), allowed ? origin : null, origin);
  }
});

async function strictClient() {
  const config = await discover(service, app);
  // Makes openid-client verify the signature too, although it received the token directly from the server.
  oidc.enableNonRepudiationChecks(config);
  return config;
}

test("an id_token is signed with a published key and names the client, user, organization and nonce", async (t) => {
  const nonce = oidc.randomNonce();
  const flow = await authorize(service, app, user, { parameters: { scope: "openid", nonce } });
  const tokens = await oidc.authorizationCodeGrant(await strictClient(), flow.callback, {
    pkceCodeVerifier: flow.verifier,
    expectedState: flow.state,
    expectedNonce: nonce,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  t.is(claims?.iss, service.url);
  t.is(claims?.aud, app.clientId);
  t.is(claims?.sub, user.id);
  t.is(claims?.preferred_username, user.username);
  t.is(claims?.organization_id, own.id);
  t.is(claims?.exp, (claims?.iat ?? 0) + 3600);
  t.deepEqual(claims?.amr, ["pwd"]);
  t.true(Math.abs((claims?.auth_time ?? 0) - Date.now() / 1000) < 60);
});

type Checks = oidc.AuthorizationCodeGrantChecks;

const MISMATCHES: [what: string, change: (checks: Checks) => Checks][] = [
  ["a different nonce", (checks) => ({ ...checks, expectedNonce: "another" })],
  ["a different state", (checks) => ({ ...checks, expectedState: "another" })],
  ["an unexpected nonce", ({ expectedNonce: _, ...checks }) => checks],
];

for (const [what, change] of MISMATCHES) {
  test(`openid-client rejects ${what}`, async (t) => {
    const parameters = { scope: "openid", nonce: "the-nonce" };
    const flow = await authorize(service, app, user, { parameters });
    const config = await strictClient();
    await t.throwsAsync(() =>
      oidc.authorizationCodeGrant(
        config,
        flow.callback,
        change({
          pkceCodeVerifier: flow.verifier,
          expectedState: flow.state,
          expectedNonce: "the-nonce",
        }),
      ),
    );
  });
}

test("openid-client rejects a response from another issuer", async (t) => {
  const flow = await authorize(service, app, user);
  flow.callback.searchParams.set("iss", "https://evil.example");
  const checks = { pkceCodeVerifier: flow.verifier, expectedState: flow.state };
  const config = await strictClient();
  await t.throwsAsync(() => oidc.authorizationCodeGrant(config, flow.callback, checks));
});
