import test from "ava";
import type { Role } from "../../../adapters/organizations/store.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../harness/clients/dashboard.ts";
import {
  allow,
  authorizeUrl,
  codeFor,
  createApp,
  type Fields,
  openConsent,
  postAsClient,
  redeemCode,
  refresh,
  runCodeFlow,
  sendForm,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { bearer, startTestService, type TestService } from "../../harness/service.ts";

const ALL = "links:write webhooks:write";
const RESOURCE_SERVER_SECRET = "a secret of the resource server, long enough";

const service = await startTestService({ RESOURCE_SERVER_SECRET });
const { app, user } = await createApp(service);

const { browser: signedIn } = await browserOf(service, user);

test.after.always(() => service.close());

/** Creates a user with a role in an organization that has another owner. */
async function createUser(role: Role, of: TestService = service) {
  const organization = await of.createOrganization();
  await of.createUser([organization.id], undefined, "owner");
  const user = await of.createUser([organization.id], undefined, role);
  const setRole = (to: Role) =>
    of.storage.members.changeRole({
      organizationId: organization.id,
      userId: user.id,
      manageableRoles: ["owner", "admin", "member"],
      role: to,
      actor: OPERATOR,
    });
  return { organization, user, setRole };
}

/** Lists webhooks with an access token, over REST and over MCP. */
async function listWebhooks(token: string) {
  const api = apiAt(service.url, token);
  const rest = await api.get("/v1/webhooks");
  const call = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "list_webhooks", arguments: {} },
  };
  const mcp = await api.send("POST", "/mcp", {
    json: call,
    headers: { accept: "application/json, text/event-stream" },
  });
  return { rest, mcp };
}

async function introspect(token: string) {
  const { body } = await postAsClient(service, "introspect", app, { token });
  return body;
}

for (const [role, granted] of [
  ["owner", ALL],
  ["admin", ALL],
  ["member", "links:write"],
] as const) {
  test(`an app of a user with the role ${role} that requests ${ALL} is granted ${granted}`, async (t) => {
    const { user } = await createUser(role);
    const code = await codeFor(service, app, user, { changes: { scope: ALL } });
    const { body } = await redeemCode(service, app, code);
    t.is(body.scope, granted);
    t.is((await introspect(String(body.access_token))).scope, granted);
    const { rest, mcp } = await listWebhooks(String(body.access_token));
    t.is(rest.status, role === "member" ? 403 : 200);
    t.is(mcp.status, role === "member" ? 403 : 200);
  });
}

test("a member's app can neither read nor change webhooks, even if it requests those scopes", async (t) => {
  const { organization, owner, member } = await createTeam(service);
  const thirdParty = await service.createOrganization();
  await service.storage.clients.setRedirectUris(
    thirdParty.id,
    ["https://app.example.com/callback"],
    OPERATOR,
  );
  const ownToken = await service.token(await clientOf(organization.id, owner.id));
  const webhook = await apiAt(service.url, ownToken).send<{ id: string }>("POST", "/v1/webhooks", {
    json: { url: "https://receiver.example.com/", events: ["link.created"] },
  });
  const { accessToken } = await runCodeFlow(service, thirdParty, member, {
    changes: { scope: `${ALL} webhooks:read` },
  });
  const api = apiAt(service.url, accessToken);
  const path = `/v1/webhooks/${webhook.body.id}`;
  const forbidden = { status: 403, code: "insufficient_scope" };
  isProblem(t, await api.get("/v1/webhooks"), forbidden);
  isProblem(t, await api.get(path), forbidden);
  isProblem(t, await api.send("DELETE", path), forbidden);
  isProblem(t, await api.send("POST", `${path}/rotate-secret`), forbidden);
  const json = { url: "https://attacker.example.com/", events: ["link.created"] };
  isProblem(t, await api.send("POST", "/v1/webhooks", { json }), forbidden);
  t.is((await api.get("/v1/links")).status, 200);
});

async function clientOf(organizationId: string, ownerId: string) {
  const actor = { id: ownerId };
  const rotated = await service.storage.clients.rotateSecret(
    organizationId,
    { overlapMs: 0, compromised: false },
    actor,
  );
  if (!rotated) throw new Error("no client");
  return rotated;
}

test("the consent page lists the scopes that a member's role allows, and those that it doesn't", async (t) => {
  const { organization, user } = await createUser("member");
  const page = await openConsent(
    new TestBrowser(service.url),
    user,
    authorizeUrl(service, app, { scope: ALL }),
  );
  const offered = page.html.querySelectorAll(".scopes li").map((item) => item.text.trim());
  t.deepEqual(offered, ["Create, edit and delete links"]);
  t.regex(
    page.html.querySelector("form .hint")?.text.replaceAll(/\s+/g, " ") ?? "",
    new RegExp(`^Your role in ${organization.name} is member, .* create, edit and delete webhooks\\.$`),
  );
});

test("a member can't approve an app that requests only webhook scopes", async (t) => {
  const { organization, user } = await createUser("member");
  const browser = new TestBrowser(service.url);
  const page = await openConsent(browser, user, authorizeUrl(service, app, { scope: "webhooks:write" }));
  t.deepEqual(
    page.html.querySelectorAll("button").map((button) => button.text.trim()),
    ["Cancel"],
  );
  t.regex(page.text, /Your role doesn(’|&#39;|')t allow the access that this app requests/);
  const { status } = await sendForm(browser, page, { decision: "allow", organization_id: organization.id });
  t.is(status, 422);
});

test("a user with different roles in two organizations grants what each role allows", async (t) => {
  const { organization, user } = await createUser("member");
  const own = await service.createOrganization();
  await service.storage.organizations.addMember(own.id, user.id, "owner", OPERATOR);
  const browser = new TestBrowser(service.url);
  for (const [id, granted] of [
    [organization.id, "links:write"],
    [own.id, ALL],
  ] as const) {
    const callback = await allow(service, user, authorizeUrl(service, app, { scope: ALL }), {
      browser: browser,
      organizationId: id,
    });
    const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
    t.is(body.scope, granted, id);
  }
});

test("after a role change, the next request, introspection and refresh lose its scopes", async (t) => {
  const { user, setRole } = await createUser("admin");
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user, { changes: { scope: ALL } });
  t.is((await listWebhooks(accessToken)).rest.status, 200);

  await setRole("member");
  const { rest, mcp } = await listWebhooks(accessToken);
  isProblem(t, rest, { status: 403, code: "insufficient_scope" });
  isProblem(t, mcp, { status: 403, code: "insufficient_scope" });
  t.is((await apiAt(service.url, accessToken).get("/v1/links")).status, 200);
  t.is((await introspect(accessToken)).scope, "links:write");
  const seen = await fetch(`${service.url}/oauth/introspect`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`resource-server:${RESOURCE_SERVER_SECRET}`)}` },
    body: new URLSearchParams({ token: accessToken }),
  });
  t.is(((await seen.json()) as { scope: string }).scope, "links:write");

  for (const fields of [{}, { scope: ALL }]) {
    const { status, body } = await refresh(service, app, refreshToken, fields);
    t.is(status, 200, JSON.stringify(body));
    t.is(body.scope, "links:write", JSON.stringify(fields));
    t.is((await listWebhooks(String(body.access_token))).rest.status, 403, JSON.stringify(fields));
  }

  await setRole("owner");
  t.is((await listWebhooks(accessToken)).rest.status, 200, "the grant itself is unchanged");
  t.is((await refresh(service, app, refreshToken)).body.scope, ALL);
});

test("a role lost before the code is redeemed adds no scopes to the token", async (t) => {
  const { user, setRole } = await createUser("admin");
  const code = await codeFor(service, app, user, { changes: { scope: ALL } });
  await setRole("member");
  const { body } = await redeemCode(service, app, code);
  t.is(body.scope, "links:write");
  t.is((await listWebhooks(String(body.access_token))).rest.status, 403);
});

test("after a promotion, an app still has only the scopes that the consent page listed", async (t) => {
  const { user, setRole } = await createUser("member");
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user, { changes: { scope: ALL } });
  await setRole("admin");
  isProblem(t, (await listWebhooks(accessToken)).rest, { status: 403, code: "insufficient_scope" });
  t.is((await refresh(service, app, refreshToken)).body.scope, "links:write");
  t.is((await refresh(service, app, refreshToken, { scope: ALL })).body.error, "invalid_scope");
});

test("a refresh is rejected while the role allows none of its scopes, and works again afterwards", async (t) => {
  const { user, setRole } = await createUser("owner");
  const { refreshToken } = await runCodeFlow(service, app, user, { changes: { scope: "webhooks:write" } });
  await setRole("member");
  const rejected = await refresh(service, app, refreshToken);
  t.is(rejected.status, 400);
  t.is(rejected.body.error, "invalid_scope");
  await setRole("admin");
  t.is((await refresh(service, app, refreshToken)).body.scope, "webhooks:write");
});

test("MCP doesn't list tools that the role doesn't allow", async (t) => {
  const { user, setRole } = await createUser("admin");
  const { accessToken } = await runCodeFlow(service, app, user, { changes: { scope: ALL } });
  const names = async () => {
    const answer = await fetch(`${service.url}/mcp`, {
      method: "POST",
      headers: {
        ...bearer(accessToken),
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
    return [...(await answer.text()).matchAll(/"name":"(\w+)"/g)].map(([, name]) => name);
  };
  t.true((await names()).includes("create_webhook"));
  await setRole("member");
  const allowed = await names();
  t.false(
    allowed.some((name) => name?.includes("webhook")),
    allowed.join(" "),
  );
  t.true(allowed.includes("create_link"));
});

test("the list of authorized apps shows the scopes that each can currently use", async (t) => {
  const { organization, owner, admin, base } = await createTeam(service);
  await runCodeFlow(service, app, admin, { changes: { scope: ALL } });
  const scopes = async () => {
    const { body } = await owner.api.get<{ data: { scopes: string[] }[] }>(`${base}/apps`);
    return body.data[0]?.scopes;
  };
  t.deepEqual(await scopes(), ["links:write", "webhooks:write"]);
  await owner.api.send("PATCH", `${base}/members/${admin.id}`, { json: { role: "member" } });
  t.deepEqual(await scopes(), ["links:write"]);
  t.truthy(organization.id);
});

test("a client credentials token acts for its organization with every scope", async (t) => {
  const { rest } = await listWebhooks(await service.token(app));
  t.is(rest.status, 200);
});

const GRANTED: [what: string, changes: Fields, scope: string][] = [
  ["no scope is granted both link scopes", { scope: undefined }, "links:read links:write"],
  ["an empty scope is granted both link scopes", { scope: "" }, "links:read links:write"],
  ["a read scope is granted that scope", { scope: "links:read" }, "links:read"],
  [
    "a write scope is granted without the read scope it includes",
    { scope: "webhooks:write" },
    "webhooks:write",
  ],
  ["an unknown and a known scope is granted the known one", { scope: "admin:all links:read" }, "links:read"],
  ["a repeated scope is granted the scope once", { scope: "links:read links:read" }, "links:read"],
  ["only openid is granted openid", { scope: "openid" }, "openid"],
  ["openid and an API scope is granted both", { scope: "openid links:read" }, "openid links:read"],
  [
    "all scopes is granted all of them",
    { scope: "openid links:read links:write webhooks:read webhooks:write" },
    "openid links:read links:write webhooks:read webhooks:write",
  ],
];

for (const [what, changes, scope] of GRANTED) {
  test(`a request with ${what}`, async (t) => {
    const { status, body } = await redeemCode(service, app, await codeFor(service, app, user, { changes }));
    t.is(status, 200);
    t.is(body.scope, scope);
    t.is("id_token" in body, scope.includes("openid"));
    const again = await refresh(service, app, String(body.refresh_token));
    t.is(again.body.scope, scope);
  });
}

for (const scope of ["links:read", "offline_access links:read"]) {
  for (const prompt of [undefined, "consent"]) {
    test(`a refresh token is issued for the scope ${scope} with the prompt ${prompt}`, async (t) => {
      const code = await codeFor(service, app, user, { changes: { scope, prompt } });
      const { body } = await redeemCode(service, app, code);
      t.regex(String(body.refresh_token), /^lgr_/);
      t.is((await refresh(service, app, String(body.refresh_token))).status, 200);
    });
  }
}

test("the consent page lists only known requested scopes", async (t) => {
  const url = authorizeUrl(service, app, { scope: "admin:all links:read" });
  const { html } = await openConsent(new TestBrowser(service.url), user, url);
  t.is(html.querySelectorAll(".scopes li").length, 1);
});

test("a token with links:read can read but not create links", async (t) => {
  const code = await codeFor(service, app, user, { changes: { scope: "links:read" } });
  const { body } = await redeemCode(service, app, code);
  const headers = { ...bearer(String(body.access_token)), "content-type": "application/json" };
  const links = `${service.url}/v1/links`;
  t.is((await fetch(links, { headers })).status, 200);
  const link = JSON.stringify({ url: "https://example.com/" });
  t.is((await fetch(links, { method: "POST", headers, body: link })).status, 403);
});

test("a token with only openid is rejected by the API", async (t) => {
  const code = await codeFor(service, app, user, { changes: { scope: "openid" } });
  const { body } = await redeemCode(service, app, code);
  const answer = await fetch(`${service.url}/v1/links`, { headers: bearer(String(body.access_token)) });
  t.true(answer.status === 401 || answer.status === 403, String(answer.status));
});

for (const scope of ["links:read\u0000", 'links:read "x"', "links:read\\", "links:read\tx", "links:rëad"]) {
  test(`the scope ${JSON.stringify(scope)} with invalid characters is rejected with invalid_scope`, async (t) => {
    const page = await signedIn.open(authorizeUrl(service, app, { scope }));
    t.is(new URL(page.url).searchParams.get("error"), "invalid_scope");
  });
}
