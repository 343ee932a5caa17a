import test from "ava";
import { apiAt, isProblem, type Reply } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { authorizeUrl } from "../../harness/clients/authorization-request.ts";
import { browserOf, firstPartyToken } from "../../harness/clients/dashboard.ts";
import { firstPartyAt, isTokenAnswer, PASSWORD } from "../../harness/clients/first-party.ts";
import { postAsClient, RESOURCE_SERVER } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { isSignedIn } from "../../harness/clients/visits.ts";
import { advanceClock, DAY_MS } from "../../harness/clock.ts";
import { signInExternally, startWithProvider } from "../../harness/providers/identity-provider.ts";
import { OPERATOR, postForm, type TestUser } from "../../harness/service.ts";

const settings = { RESOURCE_SERVER_SECRET: RESOURCE_SERVER.clientSecret };
const { provider, service } = await startWithProvider(settings);

const RESOURCES: [method: string, path: string, json?: object][] = [
  ["GET", "/v1/organization"],
  ["GET", "/v1/links"],
  ["POST", "/v1/links", { url: "https://example.com/" }],
  ["POST", "/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" }],
];
const DASHBOARD: [method: string, path: string][] = [
  ["GET", "/dashboard/me"],
  ["GET", "/dashboard/account"],
  ["GET", "/dashboard/account/export"],
  ["DELETE", "/dashboard/account/sessions"],
  ["POST", "/dashboard/organizations"],
  ["POST", "/auth/logout"],
];

const SIGN_IN_REQUIRED = { status: 401, code: "sign_in_required" };
const INVALID_GRANT = { status: 401, code: "invalid_grant" };
const { post, me, register } = firstPartyAt(service.url);
const refresh = (refresh_token: string) => post("/auth/refresh", { refresh_token });

/** Creates a member of an organization on a paid plan, so a rejection is due to the token and not to the user. */
async function member() {
  const own = await service.createOrganization();
  return { own, user: await service.createUser([own.id]) };
}

async function isInvalidAt(t: Parameters<typeof isProblem>[0], token: string, what: string) {
  for (const [method, path, json] of RESOURCES) {
    const reply = await apiAt(service.url, token).send(method, path, json && { json });
    isProblem(t, reply, { status: 401, code: "invalid_token" });
    t.regex(reply.headers.get("www-authenticate") ?? "", /^Bearer .*error="invalid_token"/, what);
  }
}

const tokensOf = async (user: TestUser) => (await post("/auth/login", user)).body;

test("the API and MCP reject first-party access and refresh tokens", async (t) => {
  const { access_token, refresh_token } = await tokensOf((await member()).user);
  await isInvalidAt(t, access_token, "access");
  await isInvalidAt(t, refresh_token, "refresh");
});

test("the API and MCP reject a session, as a cookie and as a bearer token", async (t) => {
  const { user } = await member();
  const { browser } = await browserOf(service, user);
  const cookie = await browser.jar.getCookieString(service.url);
  for (const [method, path, json] of RESOURCES) {
    const reply: Reply<unknown> = await apiAt(service.url).send(method, path, {
      ...(json && { json }),
      headers: { cookie, origin: service.url, "sec-fetch-site": "same-origin" },
    });
    t.is(reply.status, 401);
    t.notRegex(reply.headers.get("www-authenticate") ?? "", /error=/, "as if there were no credentials");
  }
  for (const { value } of await browser.jar.getCookies(service.url)) await isInvalidAt(t, value, "cookie");
});

test("the API and MCP reject tokens and sessions of the identity provider", async (t) => {
  const tokens: string[] = [];
  const keep = ({ body }: { body: Record<string, string> }) =>
    tokens.push(body.id_token ?? "", body.access_token ?? "");
  provider.service.once("beforeResponse", keep as never);
  const browser = new TestBrowser(service.url);
  t.is((await signInExternally(service, provider, browser)).status, 200);
  t.is(tokens.length, 2);
  for (const token of tokens) {
    await isInvalidAt(t, token, "identity provider");
    for (const [method, path] of DASHBOARD)
      isProblem(t, await apiAt(service.url, token).send(method, path), SIGN_IN_REQUIRED);
  }
});

test("the dashboard rejects API tokens of clients and of users", async (t) => {
  const { own, user } = await member();
  const app = await service.createOrganization();
  const allowed = await tokensFor(service, app, user);
  const { browser } = await browserOf(service, user);
  const cookie = await browser.jar.getCookieString(service.url);
  for (const token of [await service.token(own), allowed.access_token, String(allowed.refresh_token)]) {
    const api = apiAt(service.url, token);
    for (const [method, path] of DASHBOARD) {
      isProblem(t, await api.send(method, path), SIGN_IN_REQUIRED);
      const beside = await api.send(method, path, { headers: { cookie, origin: service.url } });
      t.is(beside.status, 401, "a session doesn't make it valid");
    }
    const headers = { accept: "text/html", authorization: `Bearer ${token}` };
    const page = await fetch(`${service.url}/dashboard`, { headers, redirect: "manual" });
    t.is(page.headers.get("location"), "/auth/login?return_to=%2Fdashboard");
    isProblem(t, await refresh(token), INVALID_GRANT);
  }
  t.true(await isSignedIn(service, browser), "still signed in");
});

test("the token endpoint rejects a first-party refresh token for every resource, and it stays valid", async (t) => {
  const { refresh_token } = await tokensOf((await member()).user);
  for (const resource of ["", ...["", "/v1", "/mcp", "/dashboard"].map((path) => service.url + path)]) {
    const answer = await postForm(`${service.url}/oauth/token`, {
      grant_type: "refresh_token",
      client_id: "dashboard",
      refresh_token,
      ...(resource && { resource }),
    });
    t.is(answer.status, 400, resource);
    t.like(await answer.json(), { error: "invalid_grant" });
  }
  t.is((await refresh(refresh_token)).status, 200);
});

test("the dashboard client gets no other grants and can't be authorized", async (t) => {
  const { user } = await member();
  for (const grant_type of ["client_credentials", "authorization_code", "password"]) {
    const fields = { grant_type, client_id: "dashboard", code: "a", ...user, scope: "links:write" };
    const answer = await postForm(`${service.url}/oauth/token`, fields);
    t.is(answer.status, 400);
    const error = grant_type === "password" ? "unsupported_grant_type" : "unauthorized_client";
    t.like(await answer.json(), { error });
  }
  const redirect_uri = `${service.url}/auth/sso/callback`;
  const url = authorizeUrl(service, { clientId: "dashboard" }, { redirect_uri });
  const answer = await fetch(url, { redirect: "manual" });
  t.is(answer.status, 400);
  t.is(answer.headers.get("location"), null);
});

test("introspection reports a first-party token as inactive to every client and to the resource server", async (t) => {
  const { own, user } = await member();
  const token = await firstPartyToken(service, user);
  for (const client of [own, RESOURCE_SERVER]) {
    const { status, body } = await postAsClient(service, "introspect", client, { token });
    t.deepEqual([status, body], [200, { active: false }]);
  }
});

const AFTER_RETRY_WINDOW = 121_000;

test.serial("a refresh token may be retried for two minutes; a later use ends its family", async (t) => {
  const first = await register();
  const other = await post("/auth/login", { username: first.user.username, password: PASSWORD });
  const second = await refresh(first.refresh_token);
  t.is(second.status, 200);
  isTokenAnswer(t, second);
  t.not(second.body.refresh_token, first.refresh_token);
  advanceClock(119_000);
  t.is((await refresh(first.refresh_token)).status, 200, "a retry after a lost response");
  advanceClock(AFTER_RETRY_WINDOW);
  isProblem(t, await refresh(first.refresh_token), INVALID_GRANT);
  isProblem(t, await refresh(second.body.refresh_token), INVALID_GRANT);
  const replays = { types: ["token.replay_detected" as const] };
  const [replay, ...others] = await service.storage.audit.list(first.organization.id, replays, 10);
  t.like(replay, { actor: "system", data: { client_id: "dashboard", replayed: "refresh_token" } });
  t.deepEqual(others, []);
  for (const token of [first.access_token, second.body.access_token]) t.is((await me(token)).status, 401);
  t.is((await me(other.body.access_token)).status, 200, "another grant stays valid");
  advanceClock(3600_000);
  t.is((await me(other.body.access_token)).status, 401);
});

test.serial("a refresh token lasts 30 days without a use, and its family 90 days with any", async (t) => {
  const { refresh_token: unused } = await register();
  advanceClock(DAY_MS);
  let { refresh_token } = await register();
  for (let round = 1; round <= 3; round++) {
    advanceClock(29 * DAY_MS);
    const { status, body } = await refresh(refresh_token);
    t.is(status, 200, `round ${round}`);
    if (round === 1) isProblem(t, await refresh(unused), INVALID_GRANT);
    ({ refresh_token } = body);
  }
  advanceClock(3 * DAY_MS);
  isProblem(t, await refresh(refresh_token), INVALID_GRANT);
});

for (const kind of ["access_token", "refresh_token"] as const)
  test(`only its own client can revoke a first-party ${kind} at the revocation endpoint, with its family`, async (t) => {
    const tokens = await register();
    const { own } = await member();
    t.is((await postAsClient(service, "revoke", own, { token: tokens[kind] })).status, 200);
    t.is((await me(tokens.access_token)).status, 200);
    await postForm(`${service.url}/oauth/revoke`, { client_id: "dashboard", token: tokens[kind] });
    t.is((await me(tokens.access_token)).status, 401);
    isProblem(t, await refresh(tokens.refresh_token), INVALID_GRANT);
  });

test("what isn't a refresh token is rejected, as is that of a disabled user", async (t) => {
  const { user, refresh_token: disabled } = await register();
  await service.storage.disabledAccounts.disable(user.id, null, OPERATOR);
  for (const refresh_token of [undefined, `lgr_${"a".repeat(43)}`, 7, "lgr_\u0000", disabled])
    isProblem(t, await post("/auth/refresh", { refresh_token }), INVALID_GRANT);
});

test("signing out with a token revokes it and its family, and no other grant", async (t) => {
  const first = await register();
  const other = await post("/auth/login", { username: first.user.username, password: PASSWORD });
  const { status, text } = await post("/auth/logout", {}, first.access_token);
  t.is(status, 204);
  t.is(text, "");
  t.is((await me(first.access_token)).status, 401);
  t.is((await refresh(first.refresh_token)).status, 401);
  t.is((await me(other.body.access_token)).status, 200);
});
