import test from "ava";
import * as oidc from "openid-client";
import { discover } from "../harness/flow.ts";
import { ask, createApp, type Fields, newTokens } from "../harness/oauth.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService({ RESOURCE_SERVER_SECRET: "r".repeat(43) });
const { app, user } = await createApp(service);
test.after.always(() => service.close());

const request = (fields: Fields = {}) =>
  ask(service, "token", app, { grant_type: "client_credentials", ...fields });

test("sec 61: the answer has neither a refresh token nor an id_token", async (t) => {
  for (const scope of [undefined, "openid offline_access links:read"]) {
    const { status, body } = await request({ scope });
    t.is(status, 200);
    t.deepEqual(Object.keys(body).sort(), ["access_token", "expires_in", "scope", "token_type"]);
    t.is(body.token_type, "Bearer");
    t.is(body.expires_in, 3600);
  }
});

const ALL = "links:read links:write webhooks:read webhooks:write";
const GRANTED: [what: string, scope: string | undefined, granted: string][] = [
  ["no scope: all of the API", undefined, ALL],
  ["an empty scope: all of the API", "", ALL],
  ["one: that one", "webhooks:read", "webhooks:read"],
  ["one twice: once", "links:read links:read", "links:read"],
  ["a write scope: without the read scope it includes", "links:write", "links:write"],
  ["openid and offline_access beside others: the others", "openid links:read offline_access", "links:read"],
];

for (const [what, scope, granted] of GRANTED) {
  test(`sec 45, 62: ${what}`, async (t) => {
    t.is((await request({ scope })).body.scope, granted);
  });
}

for (const scope of [
  "admin:*",
  "links:read admin:all",
  "LINKS:READ",
  "openid",
  "offline_access",
  "links",
  "links:*",
  "links:read,links:write",
]) {
  test(`sec 62: the scope ${scope} is invalid_scope`, async (t) => {
    const { status, body } = await request({ scope });
    t.is(status, 400);
    t.is(body.error, "invalid_scope");
  });
}

const RESOURCES: [what: string, resource: string | string[] | undefined, audience: string][] = [
  ["no resource: the one for both", undefined, service.url],
  ["an empty resource: the one for both", "", service.url],
  ["the one for both", service.url, service.url],
  ["the API", `${service.url}/v1`, `${service.url}/v1`],
  ["MCP", `${service.url}/mcp`, `${service.url}/mcp`],
  ["a trailing slash", `${service.url}/v1/`, `${service.url}/v1`],
  ["a trailing slash of the one for both", `${service.url}/`, service.url],
  ["an upper-case scheme and host", `${service.url.toUpperCase()}/v1`, `${service.url}/v1`],
];

for (const [what, resource, audience] of RESOURCES) {
  test(`sec 63: ${what} is the audience`, async (t) => {
    const { status, body } = await request({ resource });
    t.is(status, 200);
    const { body: token } = await ask(service, "introspect", app, { token: String(body.access_token) });
    t.is(token.aud, audience);
  });
}

const REFUSED: [what: string, resource: string | string[]][] = [
  ["another host", "https://evil.example/v1"],
  ["another path", `${service.url}/v2`],
  ["a path below", `${service.url}/v1/links`],
  ["an upper-case path", `${service.url}/V1`],
  ["two slashes", `${service.url}/v1//`],
  ["another port", service.url.replace(/\d+$/, "1")],
  ["another scheme", service.url.replace("http:", "https:")],
  ["a query", `${service.url}/v1?x`],
  ["a fragment", `${service.url}/v1#x`],
  ["an empty fragment", `${service.url}/v1#`],
  ["a user", service.url.replace("//", "//x@")],
  ["a user in capitals", service.url.replace("//", "//X@").toUpperCase()],
  ["a way back", `${service.url}/x/../v1`],
  ["a dot", `${service.url}/./v1`],
  ["a space in front", ` ${service.url}/v1`],
  ["a space behind", `${service.url}/v1 `],
  ["a line end", `${service.url}/v1\n`],
  ["a backslash", `${service.url}\\v1`],
  ["an escape", `${service.url}/%761`],
  ["no absolute URI", "/v1"],
  ["no URI", "v1"],
  ["an opaque URI", "urn:linkgate:v1"],
  ["all of them", [service.url, `${service.url}/v1`, `${service.url}/mcp`]],
  ["two of them", [`${service.url}/v1`, `${service.url}/mcp`]],
  ["a good one and a bad one", [service.url, "https://evil.example"]],
];

for (const [what, resource] of REFUSED) {
  test(`sec 63: the resource that is ${what} is invalid_target`, async (t) => {
    const { status, body } = await request({ resource });
    t.is(status, 400);
    t.is(body.error, "invalid_target");
  });
}

test("sec 64: the subject of a client's token is the client, never a person", async (t) => {
  const { body } = await request();
  const own = await ask(service, "introspect", app, { token: String(body.access_token) });
  t.is(own.body.client_id, app.clientId);
  t.notRegex(String(own.body.sub ?? ""), /^usr_/);
  const { accessToken } = await newTokens(service, app, user);
  const person = await ask(service, "introspect", app, { token: accessToken });
  t.is(person.body.sub, user.id);
  t.regex(user.id, /^usr_/);
  t.regex(app.clientId, /^lgc_/);
});

test("sec 61: the client of the resources gets no token", async (t) => {
  const resourceServer = { ...app, clientId: "resource-server", clientSecret: "r".repeat(43) };
  const { status, body } = await ask(service, "token", resourceServer, { grant_type: "client_credentials" });
  t.is(status, 400);
  t.is(body.error, "unauthorized_client");
});

test("a client without redirect URIs gets a token for itself", async (t) => {
  const bare = await service.createOrganization();
  t.is((await ask(service, "token", bare, { grant_type: "client_credentials" })).status, 200);
});

test("openid-client gets a token with a scope and a resource", async (t) => {
  const config = await discover(service, app);
  const tokens = await oidc.clientCredentialsGrant(config, {
    scope: "links:read",
    resource: `${service.url}/v1`,
  });
  t.is(tokens.scope, "links:read");
  t.is((await oidc.tokenIntrospection(config, tokens.access_token)).aud, `${service.url}/v1`);
});
