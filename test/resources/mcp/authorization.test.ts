import test from "ava";
import { apiAt, isProblem } from "../../harness/api.ts";
import { challengeOf } from "../../harness/challenge.ts";
import { ALL_ERAS, connectMcp, type Era, modernRequest, postMcp } from "../../harness/mcp.ts";
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
  ["a call of a tool", { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami" } }],
  ["server/discover", { jsonrpc: "2.0", id: 1, method: "server/discover" }],
  ["ping", { jsonrpc: "2.0", id: 1, method: "ping" }],
  ["a notification", { jsonrpc: "2.0", method: "notifications/initialized" }],
  ["malformed JSON", "{"],
];
for (const [name, message] of messages) {
  test(`sec 101: ${name} without a token is 401 and leads to the metadata, naming the usual scopes`, async (t) => {
    for (const authorization of [undefined, "Bearer ", "Basic YTpi"]) {
      const reply = await postMcp(url, message, authorization === undefined ? {} : { authorization });
      isProblem(t, reply, { status: 401, code: "missing_token" });
      t.deepEqual(challengeOf(reply), { scope: OFFERED, resource_metadata: metadata });
    }
  });
}

for (const method of ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"]) {
  test(`sec 101: ${method} without a token is 401 as well`, async (t) => {
    const reply = await apiAt(service.url).send(method, "/mcp");
    isProblem(t, reply, { status: 401, code: "missing_token" });
    t.deepEqual(challengeOf(reply), { scope: OFFERED, resource_metadata: metadata });
  });
}

test("sec 85: a bad token is 401 invalid_token, and the challenge says what to ask for", async (t) => {
  for (const token of ["lga_unknown", `${full}x`, app.clientSecret]) {
    const reply = await postMcp(url, LIST, bearer(token));
    isProblem(t, reply, { status: 401, code: "invalid_token" });
    const { error_description, ...challenge } = challengeOf(reply) ?? {};
    t.deepEqual(challenge, { error: "invalid_token", scope: OFFERED, resource_metadata: metadata });
    t.truthy(error_description);
  }
});

test("sec 87: a token in the query opens nothing", async (t) => {
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
    test(`sec 90: ${era}: a token with ${scope} is shown the tools that it may call`, async (t) => {
      const client = await connectMcp(url, token, era);
      const { tools } = await client.listTools();
      t.deepEqual(
        tools.map(({ name }) => name).filter((name) => !name.includes("webhook")),
        names,
      );
      await client.close();
    });
  }

  test(`sec 90: ${era}: a token without a scope for links is shown no tool for them`, async (t) => {
    const client = await connectMcp(url, webhooks, era);
    const { tools } = await client.listTools();
    t.false(tools.some(({ name }) => /_links?(_|$)|_analytics$/.test(name)));
    t.true(tools.some(({ name }) => name === "whoami"));
    await client.close();
  });

  for (const [name, token, scope] of [
    ["create_link", reader, "links:write"],
    ["update_link", reader, "links:write"],
    ["delete_link", reader, "links:write"],
    ["create_link", webhooks, "links:write"],
    ["get_link", webhooks, "links:read"],
    ["list_links", webhooks, "links:read"],
  ] as const) {
    test(`sec 105: ${era}: ${name} with ${token === reader ? "links:read" : "webhooks:write"} is a 403 that names the scope`, async (t) => {
      const { message, headers } = callOf(era, name, { url: "https://example.com/step-up" });
      const reply = await postMcp(url, message, { ...headers, ...bearer(token) });
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      const { error_description, ...challenge } = challengeOf(reply) ?? {};
      t.deepEqual(challenge, { error: "insufficient_scope", scope, resource_metadata: metadata });
      t.truthy(error_description);
    });
  }

  test(`sec 105: ${era}: a call among others in a batch needs its scope too`, async (t) => {
    const { message, headers } = callOf(era, "create_link", { url: "https://example.com/batch" });
    const reply = await postMcp(url, [LIST, message], { ...headers, ...bearer(reader) });
    isProblem(t, reply, { status: 403, code: "insufficient_scope" });
  });
}

test("sec 105: no detour makes a link with a token that may only read", async (t) => {
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
    [call, { "mcp-session-id": "session-of-somebody" }],
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
  test(`sec 104: ${name} ${isAllowed ? "may call" : "is refused with 403, with a token and without"}`, async (t) => {
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
