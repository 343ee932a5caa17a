import { extractWWWAuthenticateParams } from "@modelcontextprotocol/sdk/client/auth.js";
import { ClientCredentialsProvider } from "@modelcontextprotocol/sdk/client/auth-extensions.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { ALL_ERAS, connectMcp, type Era, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService({ ALLOWED_ORIGINS: "https://inspector.example.com" });
const app = await service.createOrganization();
const reader = await service.token(app, { scope: "links:read" });
const webhooks = await service.token(app, { scope: "webhooks:write" });
const full = await service.token(app);
const writer = await service.token(app, { scope: "links:write" });

test.after.always(() => service.close());

const url = `${service.url}/mcp`;
const metadata = `${service.url}/.well-known/oauth-protected-resource/mcp`;
const OFFERED = "links:read links:write";
const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list" };
const callOf = (era: Era, name: string, args: object = {}) =>
  era === "2026-07-28"
    ? modernRequest("tools/call", { name, arguments: args })
    : {
        message: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } },
        headers: {},
      };

const messages: [name: string, message: unknown][] = [
  ["initialize", { jsonrpc: "2.0", id: 1, method: "initialize", params: {} }],
  ["tools/list", LIST],
  ["a tool call", { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami" } }],
  ["server/discover", { jsonrpc: "2.0", id: 1, method: "server/discover" }],
  ["ping", { jsonrpc: "2.0", id: 1, method: "ping" }],
  ["a notification", { jsonrpc: "2.0", method: "notifications/initialized" }],
  ["malformed JSON", "{"],
];
for (const [name, message] of messages) {
  test(`${name} without a token is a 401 that names the metadata and the basic scopes`, async (t) => {
    for (const authorization of [undefined, "Bearer ", "Basic YTpi"]) {
      const reply = await postMcp(url, message, authorization === undefined ? {} : { authorization });
      isProblem(t, reply, { status: 401, code: "missing_token" });
      t.deepEqual(challengeOf(reply), { scope: OFFERED, resource_metadata: metadata });
    }
  });
}

for (const method of ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"]) {
  test(`${method} without a token is a 401`, async (t) => {
    const reply = await apiAt(service.url).send(method, "/mcp");
    isProblem(t, reply, { status: 401, code: "missing_token" });
    t.deepEqual(challengeOf(reply), { scope: OFFERED, resource_metadata: metadata });
  });
}

test("an invalid token is a 401 invalid_token with the basic scopes in the challenge", async (t) => {
  for (const token of ["lga_unknown", `${full}x`, app.clientSecret]) {
    const reply = await postMcp(url, LIST, bearer(token));
    isProblem(t, reply, { status: 401, code: "invalid_token" });
    const { error_description, ...challenge } = challengeOf(reply) ?? {};
    t.deepEqual(challenge, { error: "invalid_token", scope: OFFERED, resource_metadata: metadata });
    t.truthy(error_description);
  }
});

test("a token in the query is not accepted", async (t) => {
  isProblem(t, await postMcp(`${url}?access_token=${full}`, LIST), { status: 401, code: "missing_token" });
  const both = await postMcp(`${url}?access_token=${full}`, LIST, bearer(full));
  isProblem(t, both, { status: 400, code: "invalid_request" });
});

const READ_TOOLS = ["whoami", "get_link", "list_links", "get_link_analytics", "get_analytics"];
const WRITE_TOOLS = ["create_link", "create_links", "upsert_link", "update_link", "delete_link"];
const listed: [name: string, token: string, tools: string[]][] = [
  ["links:read", reader, READ_TOOLS],
  ["links:write", writer, [...READ_TOOLS, ...WRITE_TOOLS]],
];
for (const era of ALL_ERAS) {
  for (const [scope, token, names] of listed) {
    test(`${era}: a token with ${scope} lists the tools that it may call`, async (t) => {
      const client = await connectMcp(url, token, era);
      const { tools } = await client.listTools();
      const ofLinks = tools.map(({ name }) => name).filter((name) => !name.includes("webhook"));
      t.deepEqual(ofLinks.sort(), names.toSorted());
      await client.close();
    });
  }

  test(`${era}: a token without a links scope lists no tools for links`, async (t) => {
    const client = await connectMcp(url, webhooks, era);
    const { tools } = await client.listTools();
    t.false(tools.some(({ name }) => /whoami|_links?(_|$)|_analytics$/.test(name)));
    t.true(tools.some(({ name }) => name === "list_webhooks"));
    await client.close();
  });

  for (const [name, token, scope] of [
    ["create_link", reader, "links:write"],
    ["update_link", reader, "links:write"],
    ["delete_link", reader, "links:write"],
    ["create_link", webhooks, "links:write"],
    ["get_link", webhooks, "links:read"],
    ["list_links", webhooks, "links:read"],
    ["whoami", webhooks, "links:read"],
  ] as const) {
    test(`${era}: ${name} with ${token === reader ? "links:read" : "webhooks:write"} is a 403 that names the scope and what the token has`, async (t) => {
      const { message, headers } = callOf(era, name, { url: "https://example.com/step-up" });
      const reply = await postMcp(url, message, { ...headers, ...bearer(token) });
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      const { error_description, ...challenge } = challengeOf(reply) ?? {};
      const all = `${token === reader ? "links:read" : "webhooks:write"} ${scope}`;
      t.deepEqual(challenge, { error: "insufficient_scope", scope: all, resource_metadata: metadata });
      t.truthy(error_description);
    });
  }

  test(`${era}: every call in a batch requires its scope`, async (t) => {
    const { message, headers } = callOf(era, "create_link", { url: "https://example.com/batch" });
    const reply = await postMcp(url, [LIST, message], { ...headers, ...bearer(reader) });
    isProblem(t, reply, { status: 403, code: "insufficient_scope" });
  });
}

test("a read-only token cannot create a link by malformed or duplicate messages", async (t) => {
  const args = { url: "https://example.com/detour" };
  const call = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "create_link", arguments: args },
  };
  const twice = `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":${JSON.stringify(call.params)}}`;
  for (const [body, headers] of [
    [call, { "content-type": "text/plain" }],
    [call, { "content-type": "application/json-rpc" }],
    [call, { "content-type": "application/vnd.api+json" }],
    [call, { "content-type": "application/json; charset=utf-16" }],
    [call, { "mcp-session-id": "session-of-another-client" }],
    [call, { "mcp-method": "tools/list" }],
    [{ ...call, params: { ...call.params, name: ["create_link"] } }, {}],
    [{ ...call, params: { ...call.params, name: "CREATE_LINK" } }, {}],
    [{ ...call, params: { ...call.params, name: "create_link " } }, {}],
    [{ ...call, method: "TOOLS/CALL" }, {}],
    [twice, {}],
    [[[call]], {}],
  ] as const) {
    const { rpc } = await postMcp(url, body, { ...headers, ...bearer(reader) });
    t.is(rpc?.result, undefined, JSON.stringify(headers));
  }
  const { body } = await apiAt(service.url, full).get<{ data: unknown[] }>("/v1/links?search=detour");
  t.deepEqual(body.data, []);
});

const origins: [origin: string | undefined, isAllowed: boolean][] = [
  [undefined, true],
  [service.url, true],
  ["https://inspector.example.com", true],
  ["https://evil.example", false],
  ["null", false],
  ["http://inspector.example.com", false],
  ["https://inspector.example.com.evil.example", false],
  ["https://inspector.example.com:8443", false],
  [service.url.replace("localhost", "127.0.0.1"), false],
  [service.url.replace("http:", "https:"), false],
  ["file://", false],
  ["*", false],
];
for (const [origin, isAllowed] of origins) {
  const name = origin?.replace(new URL(service.url).port, "port") ?? "no Origin";
  test(`${name} ${isAllowed ? "may call" : "is rejected with 403, with or without a token"}`, async (t) => {
    const headers: Record<string, string> = origin === undefined ? {} : { origin };
    const reply = await postMcp(url, LIST, { ...headers, ...bearer(full) });
    if (isAllowed) {
      t.is(reply.status, 200);
      t.is((await postMcp(url, LIST, headers)).status, 401);
      return;
    }
    isProblem(t, reply, { status: 403, code: "origin_not_allowed" });
    isProblem(t, await postMcp(url, LIST, headers), { status: 403, code: "origin_not_allowed" });
  });
}

/** Connects version 1 of the SDK with client credentials. It requests exactly the scopes of the latest challenge. */
async function connect(scope: string) {
  const provider = new ClientCredentialsProvider({
    clientId: app.clientId,
    clientSecret: app.clientSecret,
    scope,
    expectedIssuer: service.url,
  });
  const requested: string[] = [];
  const transport = new StreamableHTTPClientTransport(new URL(service.urls.mcp), {
    authProvider: provider,
    async fetch(url, init) {
      const response = await fetch(url, init);
      const challenged = response.status === 403 && extractWWWAuthenticateParams(response).scope;
      if (challenged) provider.clientMetadata.scope = challenged;
      if (String(url).endsWith("/oauth/token")) requested.push(String(provider.clientMetadata.scope));
      return response;
    },
  });
  const client = new Client({ name: "test", version: "1.0.0" });
  // The SDK's own types don't allow `exactOptionalPropertyTypes`.
  await client.connect(transport as Transport);
  return { client, requested };
}

test("an SDK 1.x client that requests the scopes of each challenge keeps those that it had", async (t) => {
  const { client, requested } = await connect("links:read");
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const result = await client.callTool({ name, arguments: args });
    t.falsy(result.isError, name);
  };
  await call("list_links");
  await call("create_link", { url: "https://example.com/step-up" });
  await call("list_webhooks");
  await call("create_link", { url: "https://example.com/kept" });
  await call("list_links");
  t.deepEqual(requested, ["links:read", "links:read links:write", "links:read links:write webhooks:read"]);
  await client.close();
});
