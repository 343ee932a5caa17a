import test from "ava";
import type { Role } from "../../adapters/organizations.ts";
import { OPERATOR } from "../../resources/events.ts";
import { apiAt, isProblem } from "../harness/api.ts";
import { createTeam } from "../harness/dashboard.ts";
import {
  allow,
  ask,
  authorizeUrl,
  codeFor,
  createApp,
  newTokens,
  openConsent,
  redeemCode,
  refresh,
  sendForm,
} from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { bearer, startTestService, type TestService } from "../harness/service.ts";

const ALL = "links:write webhooks:write";
const RESOURCE_SERVER_SECRET = "a secret of the resource server, long enough";

const service = await startTestService({ RESOURCE_SERVER_SECRET });
const { app } = await createApp(service);
test.after.always(() => service.close());

/** A user with a role in an organization of which somebody else is an owner, too. */
async function createUser(role: Role, of: TestService = service) {
  const organization = await of.createOrganization();
  await of.createUser([organization.id], undefined, "owner");
  const user = await of.createUser([organization.id], undefined, role);
  const setRole = (to: Role) =>
    of.storage.members.changeRole({
      organizationId: organization.id,
      userId: user.id,
      touches: ["owner", "admin", "member"],
      role: to,
      by: OPERATOR,
    });
  return { organization, user, setRole };
}

/** What an access token is told at a webhook's address, over REST and over MCP. */
async function webhooksBy(token: string) {
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
  const { body } = await ask(service, "introspect", app, { token });
  return body;
}

for (const [role, granted] of [
  ["owner", ALL],
  ["admin", ALL],
  ["member", "links:write"],
] as const) {
  test(`sec 45, 62: an app of a user with the role ${role} is granted ${granted} of ${ALL}`, async (t) => {
    const { user } = await createUser(role);
    const code = await codeFor(service, app, user, { changes: { scope: ALL } });
    const { body } = await redeemCode(service, app, code);
    t.is(body.scope, granted);
    t.is((await introspect(String(body.access_token))).scope, granted);
    const { rest, mcp } = await webhooksBy(String(body.access_token));
    t.is(rest.status, role === "member" ? 403 : 200);
    t.is(mcp.status, role === "member" ? 403 : 200);
  });
}

test("a member's app can neither see nor change the organization's webhooks, whatever it asks for", async (t) => {
  const { organization, owner, member } = await createTeam(service);
  const theirs = await service.createOrganization();
  await service.storage.clients.setRedirectUris(theirs.id, ["https://app.example.com/callback"], OPERATOR);
  const secrets = await service.token(await clientOf(organization.id, owner.id));
  const webhook = await apiAt(service.url, secrets).send<{ id: string }>("POST", "/v1/webhooks", {
    json: { url: "https://receiver.example.com/", events: ["link.created"] },
  });
  const { accessToken } = await newTokens(service, theirs, member, {
    changes: { scope: `${ALL} webhooks:read` },
  });
  const api = apiAt(service.url, accessToken);
  const path = `/v1/webhooks/${webhook.body.id}`;
  const refused = { status: 403, code: "insufficient_scope" };
  isProblem(t, await api.get("/v1/webhooks"), refused);
  isProblem(t, await api.get(path), refused);
  isProblem(t, await api.send("DELETE", path), refused);
  isProblem(t, await api.send("POST", `${path}/rotate-secret`), refused);
  const json = { url: "https://attacker.example.com/", events: ["link.created"] };
  isProblem(t, await api.send("POST", "/v1/webhooks", { json }), refused);
  t.is((await api.get("/v1/links")).status, 200);
});

async function clientOf(organizationId: string, ownerId: string) {
  const by = { actor: ownerId };
  const rotated = await service.storage.clients.rotateSecret(
    organizationId,
    { overlapMs: 0, compromised: false },
    by,
  );
  if (!rotated) throw new Error("no client");
  return rotated;
}

test("the consent page offers a member what the role allows, and says what it doesn't", async (t) => {
  const { organization, user } = await createUser("member");
  const page = await openConsent(new Person(service.url), user, authorizeUrl(service, app, { scope: ALL }));
  const offered = page.html.querySelectorAll(".scopes li").map((item) => item.text.trim());
  t.deepEqual(offered, ["Create, change and delete links"]);
  t.regex(
    page.html.querySelector("form .hint")?.text.replaceAll(/\s+/g, " ") ?? "",
    new RegExp(`^Your role in ${organization.name} is member, .* create, change and delete webhooks\\.$`),
  );
});

test("a member can't allow an app that asks for webhooks alone", async (t) => {
  const { organization, user } = await createUser("member");
  const person = new Person(service.url);
  const page = await openConsent(person, user, authorizeUrl(service, app, { scope: "webhooks:write" }));
  t.deepEqual(
    page.html.querySelectorAll("button").map((button) => button.text.trim()),
    ["Cancel"],
  );
  t.regex(page.text, /Your role in your organizations doesn(’|&#39;|')t allow what this app asks for/);
  const { status } = await sendForm(person, page, { decision: "allow", organization_id: organization.id });
  t.is(status, 422);
});

test("of two organizations, each is granted what the role there allows", async (t) => {
  const { organization, user } = await createUser("member");
  const own = await service.createOrganization();
  await service.storage.organizations.addMember(own.id, user.id, "owner", OPERATOR);
  const person = new Person(service.url);
  for (const [id, granted] of [
    [organization.id, "links:write"],
    [own.id, ALL],
  ] as const) {
    const callback = await allow(service, user, authorizeUrl(service, app, { scope: ALL }), {
      person,
      organizationId: id,
    });
    const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
    t.is(body.scope, granted);
  }
});

test("sec 93: a role that is lost takes its scopes along on the next request, at introspection and at refresh", async (t) => {
  const { user, setRole } = await createUser("admin");
  const { accessToken, refreshToken } = await newTokens(service, app, user, { changes: { scope: ALL } });
  t.is((await webhooksBy(accessToken)).rest.status, 200);

  await setRole("member");
  const { rest, mcp } = await webhooksBy(accessToken);
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
    t.is(body.scope, "links:write");
    t.is((await webhooksBy(String(body.access_token))).rest.status, 403);
  }

  await setRole("owner");
  t.is((await webhooksBy(accessToken)).rest.status, 200, "the grant itself is as it was");
  t.is((await refresh(service, app, refreshToken)).body.scope, ALL);
});

test("a role that is lost before the code is redeemed is not in the token", async (t) => {
  const { user, setRole } = await createUser("admin");
  const code = await codeFor(service, app, user, { changes: { scope: ALL } });
  await setRole("member");
  const { body } = await redeemCode(service, app, code);
  t.is(body.scope, "links:write");
  t.is((await webhooksBy(String(body.access_token))).rest.status, 403);
});

test("a refresh that the role leaves nothing of is refused, and succeeds once the role is back", async (t) => {
  const { user, setRole } = await createUser("owner");
  const { refreshToken } = await newTokens(service, app, user, { changes: { scope: "webhooks:write" } });
  await setRole("member");
  const refused = await refresh(service, app, refreshToken);
  t.is(refused.status, 400);
  t.is(refused.body.error, "invalid_scope");
  await setRole("admin");
  t.is((await refresh(service, app, refreshToken)).body.scope, "webhooks:write");
});

test("tools that the role doesn't allow are not listed", async (t) => {
  const { user, setRole } = await createUser("admin");
  const { accessToken } = await newTokens(service, app, user, { changes: { scope: ALL } });
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
  const left = await names();
  t.false(
    left.some((name) => name?.includes("webhook")),
    left.join(" "),
  );
  t.true(left.includes("create_link"));
});

test("the list of apps shows what each can use now", async (t) => {
  const { organization, owner, admin, base } = await createTeam(service);
  await newTokens(service, app, admin, { changes: { scope: ALL } });
  const scopes = async () => {
    const { body } = await owner.api.get<{ data: { scopes: string[] }[] }>(`${base}/apps`);
    return body.data[0]?.scopes;
  };
  t.deepEqual(await scopes(), ["links:write", "webhooks:write"]);
  await owner.api.send("PATCH", `${base}/members/${admin.id}`, { json: { role: "member" } });
  t.deepEqual(await scopes(), ["links:write"]);
  t.truthy(organization.id);
});

test("client credentials act for the organization itself, with every scope", async (t) => {
  const { rest } = await webhooksBy(await service.token(app));
  t.is(rest.status, 200);
});
