import test from "ava";
import { createRemoteJWKSet, jwtVerify } from "jose";
import type { Role } from "../../resources/access/scopes.ts";
import { codeFor, runCodeFlow, shareApp } from "../harness/clients/authorization.ts";
import { createApp, formOf } from "../harness/clients/authorization-request.ts";
import { firstPartyToken } from "../harness/clients/dashboard.ts";
import { postAsClient, read, redeemCode, refresh } from "../harness/clients/oauth.ts";
import { bearer, OPERATOR } from "../harness/service.ts";

const { service, app, own, user } = await shareApp();

const URL_OF_USERINFO = `${service.url}/oauth/userinfo`;
const userinfo = (token: unknown, init: RequestInit = {}) =>
  read(fetch(URL_OF_USERINFO, { ...init, headers: { ...bearer(String(token)), ...init.headers } }));
const tokensWith = (scope: string, changes = {}) =>
  runCodeFlow(service, app, user, { changes: { scope, ...changes } });
const CLAIMS = { sub: user.id, preferred_username: user.username, organization_id: own.id };

for (const resource of [undefined, service.url, service.urls.api, service.urls.mcp])
  test(`a token for ${resource?.replace(service.url, "$BASE_URL") ?? "no resource"} gets the claims`, async (t) => {
    const tokens = await tokensWith("openid links:read", { resource });
    const { status, headers, body } = await userinfo(tokens.accessToken);
    t.is(status, 200);
    t.deepEqual(body, CLAIMS);
    t.regex(headers.get("content-type") ?? "", /^application\/json/);
    t.is(headers.get("cache-control"), "no-store");
  });

test("a token without openid gets 403 insufficient_scope", async (t) => {
  const { refreshToken } = await tokensWith("openid links:read");
  const refreshed = async (scope: string) => (await refresh(service, app, refreshToken, { scope })).body;
  const narrowed = (await refreshed("links:read")).access_token;
  const ofClient = await service.token(app);
  for (const token of [(await tokensWith("links:read")).accessToken, narrowed, ofClient]) {
    const { status, headers, body } = await userinfo(token);
    t.is(status, 403);
    t.is(body.error, "insufficient_scope");
    const challenge = headers.get("www-authenticate") ?? "";
    t.regex(challenge, /^Bearer .*error="insufficient_scope"/);
    t.regex(challenge, /scope="openid"/);
  }
  t.is((await userinfo((await refreshed("openid")).access_token)).status, 200);
});

test("a request without a token gets 401 and a challenge without an error", async (t) => {
  const { status, headers } = await read(fetch(URL_OF_USERINFO));
  t.is(status, 401);
  const dpop = `DPoP realm="${service.url}", algs="ES256 Ed25519 EdDSA"`; // RFC 9449 §7.2
  t.is(headers.get("www-authenticate"), `Bearer realm="${service.url}", ${dpop}`);
});

test("a token in the query is rejected with 400", async (t) => {
  const { accessToken } = await tokensWith("openid links:read");
  const url = `${URL_OF_USERINFO}?${formOf({ access_token: accessToken })}`;
  const { status, headers, body } = await read(fetch(url));
  t.is(status, 400);
  t.is(body.error, "invalid_request");
  t.regex(headers.get("www-authenticate") ?? "", /error="invalid_request"/);
});

type Setup = Awaited<ReturnType<typeof createApp>> & { accessToken: string; refreshToken: string };
const { organizations, members } = service.storage;
const manageableRoles: Role[] = ["owner"];

/** What makes a token invalid; the token that is sent is another one if it is returned. */
const INVALID: Record<string, (setup: Setup) => unknown> = {
  "an unknown token": () => "lga_unknown",
  "a refresh token": ({ refreshToken }) => refreshToken,
  "a first-party token": ({ user }) => firstPartyToken(service, user),
  async "a revoked token"({ app, accessToken }) {
    await postAsClient(service, "revoke", app, { token: accessToken });
  },
  async "the token of a user who left the organization"({ own, user }) {
    await service.createUser([own.id], undefined, "owner");
    await members.remove({ organizationId: own.id, userId: user.id, manageableRoles, actor: OPERATOR });
  },
  async "the token of a client on the Free plan"({ app }) {
    await organizations.setPlan(app.id, "free", OPERATOR);
  },
};

for (const [what, spoil] of Object.entries(INVALID))
  test(`${what} gets 401 invalid_token`, async (t) => {
    const created = await createApp(service);
    const changes = { scope: "openid links:read" };
    const tokens = await runCodeFlow(service, created.app, created.user, { changes });
    t.is((await userinfo(tokens.accessToken)).status, 200);
    const token = (await spoil({ ...created, ...tokens })) ?? tokens.accessToken;
    const { status, headers, body } = await userinfo(token);
    t.is(status, 401);
    t.is(body.error, "invalid_token");
    t.is(body.sub, undefined);
    t.regex(headers.get("www-authenticate") ?? "", /^Bearer .*error="invalid_token"/);
  });

test("a user whose role lost all API scopes of the token still gets the claims", async (t) => {
  const setup = await createApp(service);
  const second = await service.createUser([setup.own.id], undefined, "owner");
  const changes = { scope: "openid webhooks:read" };
  const tokens = await runCodeFlow(service, setup.app, second, { changes });
  const change = { role: "member", manageableRoles, actor: OPERATOR } as const;
  await members.changeRole({ organizationId: setup.own.id, userId: second.id, ...change });
  t.is((await userinfo(tokens.accessToken)).body.sub, second.id);
});

test("an id_token is signed with a published key and names the client, user, organization and nonce", async (t) => {
  const code = await codeFor(service, app, user, { changes: { scope: "openid", nonce: "a-nonce" } });
  const { body } = await redeemCode(service, app, code);
  const keys = createRemoteJWKSet(new URL(`${service.url}/oauth/jwks`));
  const { payload } = await jwtVerify(String(body.id_token), keys);
  const { iat = 0, exp, auth_time, ...claims } = payload;
  t.like(claims, { iss: service.url, aud: app.clientId, nonce: "a-nonce", ...CLAIMS });
  t.deepEqual(claims.amr, ["pwd"]);
  t.is(exp, iat + 3600);
  t.true(Math.abs(Number(auth_time) - Date.now() / 1000) < 60);
  t.deepEqual((await userinfo(body.access_token)).body, CLAIMS);
});
