import test from "ava";
import { apiAt, isProblem, type Reply } from "../../harness/clients/api.ts";
import { browserOf, firstPartyToken } from "../../harness/clients/dashboard.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { postAsClient } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import {
  providerSettings,
  signInExternally,
  startMockProvider,
} from "../../harness/providers/identity-provider.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const RESOURCE_SERVER_SECRET = "a secret of the resource server, long enough";
const provider = await startMockProvider();
const service = await startTestService({ ...providerSettings(provider.issuer), RESOURCE_SERVER_SECRET });
test.after.always(async () => {
  await service.close();
  await provider.stop();
});

/** Endpoints of apps and agents. */
const RESOURCES: [method: string, path: string, json?: object][] = [
  ["GET", "/v1/organization"],
  ["GET", "/v1/links"],
  ["POST", "/v1/links", { url: "https://example.com/" }],
  ["POST", "/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" }],
];
/** Endpoints of the dashboard. */
const DASHBOARD: [method: string, path: string][] = [
  ["GET", "/dashboard/me"],
  ["GET", "/dashboard/account"],
  ["GET", "/dashboard/account/export"],
  ["DELETE", "/dashboard/account/sessions"],
  ["POST", "/dashboard/organizations"],
  ["POST", "/auth/logout"],
];

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

test("the API and MCP reject first-party access and refresh tokens", async (t) => {
  const { user } = await member();
  const reply = await apiAt(service.url).send<{ access_token: string; refresh_token: string }>(
    "POST",
    "/auth/login",
    { json: user },
  );
  await isInvalidAt(t, reply.body.access_token, "access");
  await isInvalidAt(t, reply.body.refresh_token, "refresh");
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
    for (const [method, path] of DASHBOARD) {
      isProblem(t, await apiAt(service.url, token).send(method, path), {
        status: 401,
        code: "sign_in_required",
      });
    }
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
      const anonymous = await api.send(method, path);
      isProblem(t, anonymous, { status: 401, code: "sign_in_required" });
      const beside = await api.send(method, path, { headers: { cookie, origin: service.url } });
      t.is(beside.status, 401, "a session doesn't make it valid");
    }
    const headers = { accept: "text/html", authorization: `Bearer ${token}` };
    const page = await fetch(`${service.url}/dashboard`, { headers, redirect: "manual" });
    t.is(page.headers.get("location"), "/auth/login?return_to=%2Fdashboard");
    const refreshed = await api.send("POST", "/auth/refresh", { json: { refresh_token: token } });
    isProblem(t, refreshed, { status: 401, code: "invalid_grant" });
  }
  t.is((await browser.open(`${service.url}/dashboard/account`)).status, 200, "still signed in");
});

test("the token endpoint rejects a first-party refresh token for every resource, and it stays valid", async (t) => {
  const { user } = await member();
  const login = await apiAt(service.url).send<{ refresh_token: string }>("POST", "/auth/login", {
    json: user,
  });
  const { refresh_token } = login.body;
  for (const resource of [
    "",
    service.url,
    `${service.url}/v1`,
    `${service.url}/mcp`,
    `${service.url}/dashboard`,
  ]) {
    const answer = await postForm(`${service.url}/oauth/token`, {
      grant_type: "refresh_token",
      client_id: "dashboard",
      refresh_token,
      ...(resource && { resource }),
    });
    t.is(answer.status, 400, resource);
    t.like(await answer.json(), { error: "invalid_grant" });
  }
  const refreshed = await apiAt(service.url).send("POST", "/auth/refresh", { json: { refresh_token } });
  t.is(refreshed.status, 200);
});

for (const grant_type of ["client_credentials", "authorization_code", "password"]) {
  test(`the dashboard client gets no token by ${grant_type}`, async (t) => {
    const { user } = await member();
    const fields = { grant_type, client_id: "dashboard", code: "a", ...user, scope: "links:write" };
    const answer = await postForm(`${service.url}/oauth/token`, fields);
    t.is(answer.status, 400);
    t.like(await answer.json(), {
      error: grant_type === "password" ? "unsupported_grant_type" : "unauthorized_client",
    });
  });
}

test("the dashboard client can't be authorized", async (t) => {
  const query = new URLSearchParams({
    client_id: "dashboard",
    response_type: "code",
    redirect_uri: `${service.url}/auth/sso/callback`,
    code_challenge: "a".repeat(43),
    code_challenge_method: "S256",
  });
  const answer = await fetch(`${service.url}/oauth/authorize?${query}`, { redirect: "manual" });
  t.is(answer.status, 400);
  t.is(answer.headers.get("location"), null);
});

test("introspection reports a first-party token as inactive to every client and to the resource server", async (t) => {
  const { own, user } = await member();
  const token = await firstPartyToken(service, user);
  t.deepEqual((await postAsClient(service, "introspect", own, { token })).body, { active: false });
  const basic = Buffer.from(`resource-server:${RESOURCE_SERVER_SECRET}`).toString("base64");
  const asked = await postForm(
    `${service.url}/oauth/introspect`,
    { token },
    { authorization: `Basic ${basic}` },
  );
  t.is(asked.status, 200);
  t.deepEqual(await asked.json(), { active: false });
});

for (const kind of ["access_token", "refresh_token"] as const) {
  test(`only its own client can revoke a first-party ${kind} at the revocation endpoint, with its family`, async (t) => {
    const { own, user } = await member();
    const login = await apiAt(service.url).send<Record<"access_token" | "refresh_token", string>>(
      "POST",
      "/auth/login",
      { json: user },
    );
    const { access_token, refresh_token } = login.body;
    const me = () => apiAt(service.url, access_token).send("GET", "/dashboard/me");
    t.is((await postAsClient(service, "revoke", own, { token: login.body[kind] })).status, 200);
    t.is((await me()).status, 200, "another client can't revoke it");
    const fields = { token: login.body[kind], client_id: "dashboard" };
    t.is((await postForm(`${service.url}/oauth/revoke`, fields)).status, 200);
    t.is((await me()).status, 401);
    const refreshed = await apiAt(service.url).send("POST", "/auth/refresh", { json: { refresh_token } });
    isProblem(t, refreshed, { status: 401, code: "invalid_grant" });
  });
}
