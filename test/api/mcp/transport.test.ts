import { randomBytes } from "node:crypto";
import test from "ava";
import { createLog } from "../../../server/log.ts";
import { startService } from "../../../server/process/service.ts";
import { readSettings } from "../../../server/settings/config.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { MCP_HEADERS, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { Program } from "../../harness/program.ts";
import { bearer, populate, startTestService } from "../../harness/service.ts";
import { skip } from "../../harness/skip.ts";
import { hasPython } from "../../harness/terminal.ts";

const service = await startTestService();
const [app, other] = [await service.createOrganization(), await service.createOrganization()];
const auth = bearer(await service.token(app));
const stranger = bearer(await service.token(other));

const url = `${service.url}/mcp`;
const VERSION = "2026-07-28";
const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};
const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
const whoami = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "whoami", arguments: {} } };

type Me = { organization: { id: string } };
const organizationOf = (rpc: { result?: Record<string, unknown> } | undefined) =>
  (rpc?.result?.structuredContent as Me | undefined)?.organization.id;

const KNOWN = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
test("initialize is answered in its revision, or in the newest that has it", async (t) => {
  for (const version of [...KNOWN, "2099-01-01", "1.0", VERSION]) {
    const isKnown = KNOWN.includes(version);
    const params = { ...INITIALIZE.params, protocolVersion: version };
    for (const headers of [auth, { ...auth, "mcp-protocol-version": version }]) {
      const { status, rpc, text } = await postMcp(url, { ...INITIALIZE, params }, headers);
      t.is(status, 200, text);
      t.is(rpc?.result?.protocolVersion, isKnown ? version : "2025-11-25");
    }
    const call = isKnown && (await postMcp(url, whoami, { ...auth, "mcp-protocol-version": version }));
    if (call) t.is(organizationOf(call.rpc), app.id, version);
  }
});

const modernWhoami = modernRequest("tools/call", whoami.params);
/** The same request in a revision of 2025, and in that of 2026. */
const REQUESTS: [message: unknown, headers: Record<string, string>][] = [
  [whoami, { "mcp-protocol-version": "2025-11-25" }],
  [modernWhoami.message, modernWhoami.headers],
];

test("a client gets a type that it accepts, or 406", async (t) => {
  for (const accept of ["application/json", "text/event-stream", "application/json, text/html;q=0.5"])
    for (const [message, headers] of REQUESTS) {
      const reply = await postMcp(url, message, { ...headers, ...auth, accept });
      t.is(reply.status, 200, reply.text);
      t.is(reply.headers.get("content-type")?.split(";")[0], accept.split(",")[0]);
      t.is(organizationOf(reply.rpc), app.id);
      if (accept.startsWith("application/json")) t.notThrows(() => JSON.parse(reply.text));
    }
  const sent = ["authorization", auth.authorization, "content-type", "application/json"];
  for (const accept of [["accept", "*/*"], ["accept", "application/*, text/*"], []]) {
    const own = { method: "POST", headers: [...sent, ...accept], body: JSON.stringify(whoami) };
    t.is((await sendRaw(service.url, "/mcp", own)).status, 200, accept[1]);
  }
  for (const accept of ["text/html", "image/*", "application/xml, text/plain"])
    t.is((await postMcp(url, whoami, { ...auth, accept })).status, 406);
});

test("a batch of a client that accepts only JSON gets an array of its responses", async (t) => {
  const batch = [whoami, { jsonrpc: "2.0", method: "notifications/initialized" }, { ...whoami, id: 3 }];
  const headers = { ...auth, accept: "application/json", "mcp-protocol-version": "2025-03-26" };
  const { text } = await postMcp(url, batch, headers);
  const responses: { id: number }[] = JSON.parse(text);
  t.deepEqual(new Set(responses.map(({ id }) => id)), new Set([2, 3]));
  t.is(responses.length, 2);
});

test("a cursor that is null is the same as none, of a list of tools and of a tool", async (t) => {
  const params = { name: "list_links", arguments: { cursor: null } };
  for (const message of [
    { ...list, params: { cursor: null } },
    { ...whoami, params },
  ]) {
    const { rpc, text } = await postMcp(url, message, auth);
    t.falsy(rpc?.error, text);
    t.falsy(rpc?.result?.isError, text);
  }
});

const ask = async (method: string, headers = auth) => {
  const modern = modernRequest(method);
  return (await postMcp(url, modern.message, { ...modern.headers, ...headers })).rpc?.result ?? {};
};

test("server/discover is the same for every token: revision, instructions, and capabilities that are constant", async (t) => {
  const discovered = await ask("server/discover");
  const reader = bearer(await service.token(other, { scope: "links:read" }));
  t.deepEqual(await ask("server/discover", reader), discovered);
  t.true((discovered.supportedVersions as string[]).includes(VERSION));
  const { completions, extensions, ...lists } = discovered.capabilities as Record<string, unknown>;
  t.deepEqual([completions, typeof extensions], [{}, "object"]);
  const constant = { listChanged: false };
  t.deepEqual(lists, { tools: constant, resources: constant, prompts: constant });
  const instructions = String(discovered.instructions);
  t.is(instructions.split(/\.(?:\s|$)/).filter(Boolean).length, 5);
  for (const name of ["whoami", "list_links", "upsert_link", "get_link_analytics"])
    t.true(instructions.includes(name), name);
});

test("a client may cache lists for an hour: for itself, and what is the same for every token for everyone", async (t) => {
  for (const [method, cacheScope] of [
    ["tools/list", "private"],
    ["prompts/list", "private"],
    ["resources/templates/list", "private"],
    ["resources/list", "public"],
    ["server/discover", "public"],
  ] as const)
    t.like(await ask(method), { ttlMs: 60 * 60 * 1000, cacheScope }, method);
  const { rpc } = await postMcp(url, list, auth);
  t.deepEqual(Object.keys(rpc?.result ?? {}), ["tools"], "clients of 2025 don't know these fields");
});

test("a subscription is refused as an unknown method, and opens no stream", async (t) => {
  const { message, headers } = modernRequest("subscriptions/listen");
  t.is((await postMcp(url, message, headers)).status, 401);
  for (const notifications of [{ toolsListChanged: true }, { resourceSubscriptions: ["https://a.test/"] }]) {
    const listen = { ...message, params: { ...message.params, notifications } };
    const reply = await postMcp(url, listen, { ...headers, ...auth });
    t.is(reply.status, 404);
    t.is(reply.headers.get("content-type"), "application/json; charset=utf-8");
    t.like(reply.rpc, { id: 1, error: { code: -32601 } });
  }
  t.is((await postMcp(url, { ...list, method: "no/such" }, auth)).rpc?.error?.code, -32601);
});

test("a session id is ignored and not echoed, and none is issued", async (t) => {
  for (const session of [undefined, "invented", "x".repeat(2000)])
    for (const [message, headers] of REQUESTS)
      for (const [caller, { id }] of [
        [auth, app],
        [stranger, other],
      ] as const) {
        const sent = session && { "mcp-session-id": session };
        const reply = await postMcp(url, message, { ...headers, ...caller, ...sent });
        t.is(organizationOf(reply.rpc), id);
        t.false(reply.headers.has("mcp-session-id") || reply.headers.has("set-cookie"));
        t.false(session !== undefined && reply.text.includes(session));
      }
});

test("every request is authorized: neither a session id nor initialize replaces a token", async (t) => {
  const session = { "mcp-session-id": "session-1" };
  const token = await service.token(app);
  t.is((await postMcp(url, INITIALIZE, { ...bearer(token), ...session })).status, 200);
  isProblem(t, await postMcp(url, whoami, session), { status: 401, code: "missing_token" });
  const body = new URLSearchParams({ client_id: app.clientId, client_secret: app.clientSecret, token });
  await fetch(`${service.url}/oauth/revoke`, { method: "POST", body });
  isProblem(t, await postMcp(url, whoami, bearer(token)), { status: 401, code: "invalid_token" });
});

test("other methods than POST are rejected with 405: there are no streams and no sessions", async (t) => {
  const headers = { ...auth, accept: "text/event-stream", "mcp-session-id": "x", "last-event-id": "1" };
  for (const method of ["GET", "DELETE", "PUT", "PATCH"]) {
    const reply = await apiAt(service.url).send(method, "/mcp", { headers });
    isProblem(t, reply, { status: 405, code: "method_not_allowed" });
    t.is(reply.headers.get("allow"), "POST");
  }
});

const BROKEN = [
  ...["{", "hello", "method=tools/list", "", "[".repeat(10_000), "null", "1", "[]", "[1]", "[null]"],
  ...['{"jsonrpc":"2.0","id":1}', '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
  '{"__proto__":{"method":"tools/call"}}',
];
test("what is no JSON, or no message, is a JSON-RPC error of status 400", async (t) => {
  for (const body of BROKEN) {
    const reply = await postMcp(url, body, auth);
    t.is(reply.status, 400, body);
    t.true([-32700, -32600].includes(reply.rpc?.error?.code ?? 0), reply.text);
    const modern = await postMcp(url, body, { ...modernRequest("tools/list").headers, ...auth });
    t.is(modern.status, 400, body);
    t.truthy(modern.rpc?.error, body);
  }
});

test("messages nested thousands of levels deep are refused, and those over 64 KB", async (t) => {
  const nested = `${"[".repeat(30_000)}${"]".repeat(30_000)}`;
  const ofTool = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"url":${nested}}}}`;
  isProblem(t, await postMcp(url, ofTool, auth), { status: 400, code: "invalid_json" });
  const args = { url: `https://example.com/${"a".repeat(2 ** 16)}` };
  const call = { ...whoami, params: { name: "create_link", arguments: args } };
  isProblem(t, await postMcp(url, call, auth), { status: 413, code: "body_too_large" });
});

test("a batch of more than 10 messages is rejected with 400", async (t) => {
  const headers = { ...auth, "mcp-protocol-version": "2025-03-26" };
  const batch = (length: number) => {
    const pings = Array.from({ length }, (_, id) => ({ jsonrpc: "2.0", id, method: "ping" }));
    return postMcp(url, pings, headers);
  };
  t.is((await batch(10)).status, 200);
  isProblem(t, await batch(11), { status: 400, code: "invalid_request" });
});

const STALLED = "a batch whose client reads nothing of the response doesn't delay the next one";
// Node can't make the buffer of a connection small enough to be full.
const STALLED_CLIENT = `import signal, socket, sys
connection = socket.socket()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
connection.connect((sys.argv[1], int(sys.argv[2])))
connection.sendall(sys.stdin.buffer.read())
print(connection.recv(15).decode(), flush=True)
signal.pause()`;
if (!hasPython) skip(STALLED, "there is no python3");
else
  test(STALLED, async (t) => {
    const token = await service.token(await service.createOrganization());
    // Three such links make a list as long as it can be.
    const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, key) => [key, "ä".repeat(500)]));
    for (let count = 0; count < 3; count++) await apiAt(service.url, token).createLink({ metadata });
    const headers = { ...MCP_HEADERS, ...bearer(token), "mcp-protocol-version": "2025-03-26" };
    const { hostname, port, host, pathname } = new URL(url);
    const lists = { ...whoami, params: { name: "list_links", arguments: { limit: 100 } } };
    const body = JSON.stringify(Array.from({ length: 10 }, (_, id) => ({ ...lists, id })));
    const lines = Object.entries({ ...headers, host, "content-length": Buffer.byteLength(body) });
    const client = new Program("python3", ["-c", STALLED_CLIENT, hostname, port]);
    t.teardown(() => client.stop());
    client.write(
      `POST ${pathname} HTTP/1.1\r\n${lines.map((line) => `${line.join(": ")}\r\n`).join("")}\r\n${body}`,
    );
    await client.says(/HTTP\/1.1 200/);
    t.is((await postMcp(url, [whoami, { ...whoami, id: 3 }], headers)).status, 200);
  });

const modern = modernRequest("tools/list");
const future = structuredClone(modern.message);
future.params._meta["io.modelcontextprotocol/protocolVersion"] = "2099-01-01";
const MISTAKES: [what: string, body: unknown, headers: Record<string, string>][] = [
  ["another content type", "x", { "content-type": "text/plain" }],
  ["a type that is not accepted", list, { accept: "text/html" }],
  ["an unknown revision", list, { "mcp-protocol-version": "1999-01-01" }],
  ["an unknown revision in the message", future, { ...modern.headers, "mcp-protocol-version": "2099-01-01" }],
  ["an unknown method", { ...list, method: "nothing" }, {}],
  ["an unknown tool", { ...list, method: "tools/call", params: { name: "nothing" } }, {}],
  ["text that isn't a URI", { ...list, method: "resources/read", params: { uri: "x" } }, {}],
  ["a prompt without arguments", { ...list, method: "prompts/get", params: { name: "create_campaign" } }, {}],
  ["a batch over the limit", Array.from({ length: 500 }, () => list), {}],
  ["a batch of initialize", [1, 2].map((id) => ({ ...list, id, method: "initialize", params: {} })), {}],
  ["a header that contradicts the message", modern.message, { ...modern.headers, "mcp-method": "ping" }],
];
test("the mistakes of clients are answered, and not logged as errors", async (t) => {
  const database = await createTestDatabase();
  const ENCRYPTION_KEY = randomBytes(32).toString("base64url");
  const logged: string[] = [];
  const logging = await startService(
    readSettings({ PORT: "0", DATABASE_URL: database.url, ENCRYPTION_KEY }),
    createLog("warn", { write: (line) => void logged.push(line), loss: () => ({ lines: 0 }) }),
  );
  const { createOrganization, token } = populate(logging.urls.base, logging.storage);
  const caller = bearer(await token(await createOrganization()));
  for (const [what, body, headers] of MISTAKES) {
    const reply = await postMcp(logging.urls.mcp, body, { ...headers, ...caller });
    t.true(reply.status < 500 && reply.rpc?.result === undefined, `${what}: ${reply.text}`);
    t.deepEqual(logged, [], what);
  }
  await logging.close();
});

test("the endpoint is the same with a trailing slash", async (t) => {
  for (const [message, headers] of REQUESTS)
    t.is(organizationOf((await postMcp(`${url}/`, message, { ...headers, ...auth })).rpc), app.id);
  const get = await apiAt(service.url).send("GET", "/mcp/", { headers: auth });
  isProblem(t, get, { status: 405, code: "method_not_allowed" });
});
