import test from "ava";
import * as oidc from "openid-client";
import { discover } from "../../harness/clients/flow.ts";
import { createApp, type Fields, postAsClient, runCodeFlow } from "../../harness/clients/oauth.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService({ RESOURCE_SERVER_SECRET: "r".repeat(43) });
const { app, user } = await createApp(service);
test.after.always(() => service.close());

const request = (fields: Fields = {}) =>
  postAsClient(service, "token", app, { grant_type: "client_credentials", ...fields });

test("the response has neither a refresh token nor an id_token", async (t) => {
  for (const scope of [undefined, "openid offline_access links:read"]) {
    const { status, body } = await request({ scope });
    t.is(status, 200, String(scope));
    t.deepEqual(
      Object.keys(body).sort(),
      ["access_token", "expires_in", "scope", "token_type"],
      String(scope),
    );
    t.is(body.token_type, "Bearer", String(scope));
    t.is(body.expires_in, 3600, String(scope));
  }
});

const ALL = "links:read links:write webhooks:read webhooks:write";
const GRANTED: [what: string, scope: string | undefined, granted: string][] = [
  ["no scope is granted all API scopes", undefined, ALL],
  ["an empty scope is granted all API scopes", "", ALL],
  ["one scope is granted that scope", "webhooks:read", "webhooks:read"],
  ["a repeated scope is granted the scope once", "links:read links:read", "links:read"],
  ["a write scope is granted without the read scope it includes", "links:write", "links:write"],
  [
    "openid and offline_access with other scopes is granted only the others",
    "openid links:read offline_access",
    "links:read",
  ],
];

for (const [what, scope, granted] of GRANTED) {
  test(`a request with ${what}`, async (t) => {
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
  test(`the scope ${scope} is rejected with invalid_scope`, async (t) => {
    const { status, body } = await request({ scope });
    t.is(status, 400);
    t.is(body.error, "invalid_scope");
  });
}

const RESOURCES: [what: string, resource: string | string[] | undefined, audience: string][] = [
  ["no resource", undefined, service.url],
  ["an empty resource", "", service.url],
  ["the base URL", service.url, service.url],
  ["the API's URL", `${service.url}/v1`, `${service.url}/v1`],
  ["the MCP URL", `${service.url}/mcp`, `${service.url}/mcp`],
  ["the API's URL with a trailing slash", `${service.url}/v1/`, `${service.url}/v1`],
  ["the base URL with a trailing slash", `${service.url}/`, service.url],
  [
    "the API's URL with an upper-case scheme and host",
    `${service.url.toUpperCase()}/v1`,
    `${service.url}/v1`,
  ],
];

for (const [what, resource, audience] of RESOURCES) {
  test(`a request for ${what} gets a token with the canonical audience`, async (t) => {
    const { status, body } = await request({ resource });
    t.is(status, 200);
    const { body: token } = await postAsClient(service, "introspect", app, {
      token: String(body.access_token),
    });
    t.is(token.aud, audience);
  });
}

const INVALID_RESOURCES: [what: string, resource: string | string[]][] = [
  ["another host", "https://evil.example/v1"],
  ["another path", `${service.url}/v2`],
  ["a subpath", `${service.url}/v1/links`],
  ["an upper-case path", `${service.url}/V1`],
  ["two trailing slashes", `${service.url}/v1//`],
  ["another port", service.url.replace(/\d+$/, "1")],
  ["another scheme", service.url.replace("http:", "https:")],
  ["a query", `${service.url}/v1?x`],
  ["a fragment", `${service.url}/v1#x`],
  ["an empty fragment", `${service.url}/v1#`],
  ["a username", service.url.replace("//", "//x@")],
  ["an upper-case username", service.url.replace("//", "//X@").toUpperCase()],
  ["a parent segment", `${service.url}/x/../v1`],
  ["a dot segment", `${service.url}/./v1`],
  ["a leading space", ` ${service.url}/v1`],
  ["a trailing space", `${service.url}/v1 `],
  ["a line break", `${service.url}/v1\n`],
  ["a backslash", `${service.url}\\v1`],
  ["a percent escape", `${service.url}/%761`],
  ["a relative reference", "/v1"],
  ["a bare word", "v1"],
  ["an opaque URI", "urn:linkgate:v1"],
  ["all three resources", [service.url, `${service.url}/v1`, `${service.url}/mcp`]],
  ["two resources", [`${service.url}/v1`, `${service.url}/mcp`]],
  ["a valid and an invalid resource", [service.url, "https://evil.example"]],
];

for (const [what, resource] of INVALID_RESOURCES) {
  test(`a resource parameter with ${what} is rejected with invalid_target`, async (t) => {
    const { status, body } = await request({ resource });
    t.is(status, 400);
    t.is(body.error, "invalid_target");
  });
}

test("the subject of a client credentials token is the client, never a user", async (t) => {
  const { body } = await request();
  const own = await postAsClient(service, "introspect", app, { token: String(body.access_token) });
  t.is(own.body.client_id, app.clientId);
  t.is(own.body.sub, app.clientId);
  const { accessToken } = await runCodeFlow(service, app, user);
  const delegated = await postAsClient(service, "introspect", app, { token: accessToken });
  t.is(delegated.body.sub, user.id);
  t.regex(user.id, /^usr_/);
  t.regex(app.clientId, /^lgc_/);
});

test("the resource server's client gets no token", async (t) => {
  const resourceServer = { ...app, clientId: "resource-server", clientSecret: "r".repeat(43) };
  const { status, body } = await postAsClient(service, "token", resourceServer, {
    grant_type: "client_credentials",
  });
  t.is(status, 400);
  t.is(body.error, "unauthorized_client");
});

test("a client without redirect URIs may use client credentials", async (t) => {
  const bare = await service.createOrganization();
  t.is((await postAsClient(service, "token", bare, { grant_type: "client_credentials" })).status, 200);
});

test("openid-client requests a token with a scope and a resource", async (t) => {
  const config = await discover(service, app);
  const tokens = await oidc.clientCredentialsGrant(config, {
    scope: "links:read",
    resource: `${service.url}/v1`,
  });
  t.is(tokens.scope, "links:read");
  t.is((await oidc.tokenIntrospection(config, tokens.access_token)).aud, `${service.url}/v1`);
});
