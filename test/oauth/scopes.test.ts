import test from "ava";
import type { Role } from "../../adapters/organizations/store.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { apiAt, isProblem } from "../harness/clients/api.ts";
import { codeFor, openConsent, runCodeFlow, sendForm, shareApp } from "../harness/clients/authorization.ts";
import { authorizeUrl } from "../harness/clients/authorization-request.ts";
import { connectMcp } from "../harness/clients/mcp.ts";
import { outcomeOf, postAsClient, RESOURCE_SERVER, redeemCode, refresh } from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";

const ALL = "links:write webhooks:write";

const { service, app, user } = await shareApp({ RESOURCE_SERVER_SECRET: RESOURCE_SERVER.clientSecret });

/** Creates a user with a role in an organization that has another owner. */
async function createUser(role: Role) {
  const organization = await service.createOrganization();
  await service.createUser([organization.id], undefined, "owner");
  const user = await service.createUser([organization.id], undefined, role);
  const member = { organizationId: organization.id, userId: user.id };
  const setRole = (role: Role) =>
    service.storage.members.changeRole({
      ...member,
      role,
      manageableRoles: ["owner", "admin", "member"],
      actor: OPERATOR,
    });
  return { organization, user, setRole };
}

async function listWebhooks(token: string) {
  const api = apiAt(service.url, token);
  const params = { name: "list_webhooks", arguments: {} };
  const mcp = await api.send("POST", "/mcp", {
    json: { jsonrpc: "2.0", id: 1, method: "tools/call", params },
    headers: { accept: "application/json, text/event-stream" },
  });
  return { rest: await api.get("/v1/webhooks"), mcp };
}

async function listTools(token: string): Promise<string[]> {
  const client = await connectMcp(service.urls.mcp, token);
  const { tools } = await client.listTools();
  await client.close();
  return tools.map(({ name }) => name);
}

const introspect = async (token: string, client = app) =>
  (await postAsClient(service, "introspect", client, { token })).body;

for (const [role, granted] of [
  ["owner", ALL],
  ["admin", ALL],
  ["member", "links:write"],
] as const)
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

test("the consent page lists the scopes that a member's role allows, and those that it doesn't", async (t) => {
  const { organization, user } = await createUser("member");
  const url = authorizeUrl(service, app, { scope: ALL });
  const page = await openConsent(new TestBrowser(service.url), user, url);
  const offered = page.html.querySelectorAll(".scopes li").map((item) => item.text.trim());
  t.deepEqual(offered, ["Create, edit and delete links"]);
  const hint = page.html.querySelector("form .hint")?.text.replaceAll(/\s+/g, " ") ?? "";
  t.true(hint.startsWith(`Your role in ${organization.name} is member, `), hint);
  t.true(hint.endsWith(" create, edit and delete webhooks."), hint);
});

test("a member can't approve an app that requests only webhook scopes", async (t) => {
  const { organization, user } = await createUser("member");
  const browser = new TestBrowser(service.url);
  const page = await openConsent(browser, user, authorizeUrl(service, app, { scope: "webhooks:write" }));
  const buttons = page.html.querySelectorAll("button").map((button) => button.text.trim());
  t.deepEqual(buttons, ["Cancel"]);
  t.regex(page.text, /Your role doesn(’|&#39;|')t allow the access that this app requests/);
  const { status } = await sendForm(browser, page, { decision: "allow", organization_id: organization.id });
  t.is(status, 422);
});

test("a user with different roles in two organizations grants what each role allows", async (t) => {
  const { organization, user } = await createUser("member");
  const own = await service.createOrganization();
  await service.storage.organizations.addMember(own.id, user.id, "owner", OPERATOR);
  for (const [organizationId, granted] of [
    [organization.id, "links:write"],
    [own.id, ALL],
  ] as const) {
    const options = { changes: { scope: ALL }, organizationId };
    const { body } = await redeemCode(service, app, await codeFor(service, app, user, options));
    t.is(body.scope, granted, organizationId);
  }
});

test("after a role change, the next request, introspection and refresh lose its scopes", async (t) => {
  const { user, setRole } = await createUser("admin");
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user, { changes: { scope: ALL } });
  t.is((await listWebhooks(accessToken)).rest.status, 200);
  t.true((await listTools(accessToken)).includes("list_webhooks"));

  await setRole("member");
  const { rest, mcp } = await listWebhooks(accessToken);
  isProblem(t, rest, { status: 403, code: "insufficient_scope" });
  isProblem(t, mcp, { status: 403, code: "insufficient_scope" });
  t.is((await apiAt(service.url, accessToken).get("/v1/links")).status, 200);
  const tools = await listTools(accessToken);
  t.true(tools.includes("list_links"));
  const forbidden = tools.filter((name) => /webhook|event/.test(name));
  t.deepEqual(forbidden, []);
  for (const client of [app, RESOURCE_SERVER])
    t.is((await introspect(accessToken, client)).scope, "links:write");

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
  t.is(await outcomeOf(refresh(service, app, refreshToken)), "400 invalid_scope");
  await setRole("admin");
  t.is((await refresh(service, app, refreshToken)).body.scope, "webhooks:write");
});

const GRANTED: [what: string, requested: string | undefined, granted: string][] = [
  ["no scope is granted both link scopes", undefined, "links:read links:write"],
  ["a write scope is granted without the read scope it includes", "webhooks:write", "webhooks:write"],
  ["an unknown and a known scope is granted the known one", "admin:all links:read", "links:read"],
  ["only openid is granted openid", "openid", "openid"],
];

for (const [what, requested, granted] of GRANTED)
  test(`a request with ${what}`, async (t) => {
    const code = await codeFor(service, app, user, { changes: { scope: requested } });
    const { status, body } = await redeemCode(service, app, code);
    t.is(status, 200);
    t.is(body.scope, granted);
    t.is("id_token" in body, granted.includes("openid"));
    t.is((await refresh(service, app, String(body.refresh_token))).body.scope, granted);
    const answer = await apiAt(service.url, String(body.access_token)).get("/v1/links");
    t.is(answer.status === 200, granted.includes("links"));
  });
