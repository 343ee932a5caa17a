import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { Program } from "../../harness/program.ts";
import { bearer, startTestService } from "../../harness/service.ts";
import { skip } from "../../harness/skip.ts";
import { hasPython } from "../../harness/terminal.ts";

const service = await startTestService();
const [app, other] = [await service.createOrganization(), await service.createOrganization()];
const auth = bearer(await service.token(app));
const stranger = bearer(await service.token(other));
test.after.always(() => service.close());

const url = `${service.url}/mcp`;
const VERSION = "2026-07-28";
const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};
const whoami = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "whoami", arguments: {} } };

type Me = { organization: { id: string } };
const organizationOf = (rpc: { result?: Record<string, unknown> } | undefined) =>
  (rpc?.result?.structuredContent as Me | undefined)?.organization.id;

for (const version of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]) {
  test(`initialize in revision ${version} is answered in that revision`, async (t) => {
    const params = { ...INITIALIZE.params, protocolVersion: version };
    const { status, rpc } = await postMcp(url, { ...INITIALIZE, params }, auth);
    t.is(status, 200);
    t.is(rpc?.result?.protocolVersion, version);
    const call = await postMcp(url, whoami, { ...auth, "mcp-protocol-version": version });
    t.is(organizationOf(call.rpc), app.id);
  });
}

for (const version of ["2099-01-01", "1.0", VERSION]) {
  test(`initialize in the unknown revision ${version} is answered in the newest that has it`, async (t) => {
    const params = { ...INITIALIZE.params, protocolVersion: version };
    for (const headers of [auth, { ...auth, "mcp-protocol-version": version }]) {
      const { status, rpc, text } = await postMcp(url, { ...INITIALIZE, params }, headers);
      t.is(status, 200, text);
      t.is(rpc?.result?.protocolVersion, "2025-11-25");
    }
  });
}

test(`revision ${VERSION} has no initialize`, async (t) => {
  const { message, headers } = modernRequest("initialize", {});
  const { status, rpc } = await postMcp(url, message, { ...auth, ...headers });
  t.is(status, 404);
  t.is(rpc?.error?.code, -32601);
});

const modernWhoami = modernRequest("tools/call", whoami.params);
const REQUESTS: [era: string, message: unknown, headers: Record<string, string>][] = [
  ["2025-11-25", whoami, { "mcp-protocol-version": "2025-11-25" }],
  [VERSION, modernWhoami.message, modernWhoami.headers],
];
for (const [era, message, headers] of REQUESTS) {
  for (const accept of ["application/json", "text/event-stream", "application/json, text/html;q=0.5"]) {
    test(`${era}: a client that accepts only ${accept} gets that type`, async (t) => {
      const reply = await postMcp(url, message, { ...headers, ...auth, accept });
      t.is(reply.status, 200, reply.text);
      t.is(reply.headers.get("content-type")?.split(";")[0], accept.split(",")[0]);
      t.is(organizationOf(reply.rpc), app.id);
      if (accept.startsWith("application/json")) t.notThrows(() => JSON.parse(reply.text));
    });
  }
}

test("a batch of a client that accepts only JSON gets an array of its responses", async (t) => {
  const batch = [whoami, { jsonrpc: "2.0", method: "notifications/initialized" }, { ...whoami, id: 3 }];
  const headers = { ...auth, accept: "application/json", "mcp-protocol-version": "2025-03-26" };
  const { text } = await postMcp(url, batch, headers);
  t.deepEqual(
    JSON.parse(text)
      .map(({ id }: { id: number }) => id)
      .sort(),
    [2, 3],
  );
});

for (const [what, method, params] of [
  ["of a list of tools", "tools/list", { cursor: null }],
  ["of a tool", "tools/call", { name: "list_links", arguments: { cursor: null } }],
] as const) {
  test(`a cursor ${what} that is null is the same as none`, async (t) => {
    const { rpc, text } = await postMcp(url, { jsonrpc: "2.0", id: 1, method, params }, auth);
    t.falsy(rpc?.error, text);
    t.falsy(rpc?.result?.isError, text);
  });
}

test("a notification is accepted without a response", async (t) => {
  const reply = await postMcp(url, { jsonrpc: "2.0", method: "notifications/initialized" }, auth);
  t.is(reply.status, 202);
  t.is(reply.text, "");
});

test(`server/discover names revision ${VERSION} and the capabilities`, async (t) => {
  const { message, headers } = modernRequest("server/discover");
  const { status, rpc } = await postMcp(url, message, { ...headers, ...auth });
  t.is(status, 200);
  t.true((rpc?.result?.supportedVersions as string[] | undefined)?.includes(VERSION));
  t.deepEqual(Object.keys(rpc?.result?.capabilities as object).sort(), [
    "completions",
    "extensions",
    "prompts",
    "resources",
    "tools",
  ]);
});

test("the list of tools is private: shared caches may not store it", async (t) => {
  const { message, headers } = modernRequest("tools/list");
  const { rpc } = await postMcp(url, message, { ...headers, ...auth });
  t.is(rpc?.result?.cacheScope, "private");
  t.is(typeof rpc?.result?.ttlMs, "number");
});

test("no session is created: responses have no Mcp-Session-Id and no cookie", async (t) => {
  const modern = modernRequest("tools/list");
  for (const [message, headers] of [
    [INITIALIZE, {}],
    [whoami, {}],
    [modern.message, modern.headers],
  ] as const) {
    const reply = await postMcp(url, message, { ...headers, ...auth });
    t.is(reply.status, 200);
    t.false(reply.headers.has("mcp-session-id"));
    t.false(reply.headers.has("set-cookie"));
  }
});

for (const session of ["invented", "00000000-0000-4000-8000-000000000000", "x".repeat(2000)]) {
  test(`the session id ${session.slice(0, 12)} is ignored and not echoed`, async (t) => {
    const modern = modernRequest("tools/call", { name: "whoami", arguments: {} });
    for (const [message, headers] of [
      [whoami, {}],
      [modern.message, modern.headers],
    ] as const) {
      for (const [caller, organization] of [
        [auth, app],
        [stranger, other],
      ] as const) {
        const reply = await postMcp(url, message, { ...headers, ...caller, "mcp-session-id": session });
        t.is(organizationOf(reply.rpc), organization.id);
        t.false(reply.headers.has("mcp-session-id"));
        t.false(reply.text.includes(session));
      }
    }
  });
}

test("a session id does not replace a token, even after initialize", async (t) => {
  const session = { "mcp-session-id": "session-1" };
  t.is((await postMcp(url, INITIALIZE, { ...auth, ...session })).status, 200);
  isProblem(t, await postMcp(url, whoami, session), { status: 401, code: "missing_token" });
});

test("every request is authorized: a revoked token is rejected on the next one", async (t) => {
  const token = await service.token(app);
  t.is((await postMcp(url, INITIALIZE, bearer(token))).status, 200);
  const body = new URLSearchParams({ client_id: app.clientId, client_secret: app.clientSecret, token });
  await fetch(`${service.url}/oauth/revoke`, { method: "POST", body });
  isProblem(t, await postMcp(url, whoami, bearer(token)), { status: 401, code: "invalid_token" });
});

for (const method of ["GET", "DELETE", "PUT", "PATCH"]) {
  test(`${method} is rejected with 405: there are no streams and no sessions`, async (t) => {
    const headers = { ...auth, accept: "text/event-stream", "mcp-session-id": "x", "last-event-id": "1" };
    const reply = await apiAt(service.url).send(method, "/mcp", { headers });
    isProblem(t, reply, { status: 405, code: "method_not_allowed" });
    t.is(reply.headers.get("allow"), "POST");
  });
}

const broken: [name: string, body: unknown, code: number][] = [
  ["half an object", "{", -32700],
  ["a bare word", "hello", -32700],
  ["a form", "method=tools/list", -32700],
  ["an empty batch", [], -32600],
  ["a message without a method", { jsonrpc: "2.0", id: 1 }, -32600],
];
for (const [name, body, code] of broken) {
  test(`${name} is rejected with 400 and ${code}`, async (t) => {
    const reply = await postMcp(url, body, auth);
    t.is(reply.status, 400);
    t.is(reply.rpc?.error?.code, code);
    const modern = await postMcp(url, body, { ...modernRequest("tools/list").headers, ...auth });
    t.is(modern.status, 400);
    t.truthy(modern.rpc?.error);
  });
}

for (const text of [
  "",
  "null",
  "1",
  '"x"',
  "true",
  "[1]",
  "[null]",
  '{"jsonrpc":"1.0","id":1,"method":"ping"}',
  '{"__proto__":{"method":"tools/call"}}',
  "[".repeat(10_000),
]) {
  test(`${text.slice(0, 30) || "an empty body"} is a JSON-RPC error of status 400`, async (t) => {
    const { status, rpc } = await postMcp(url, text, auth);
    t.is(status, 400);
    t.true([-32700, -32600].includes(rpc?.error?.code ?? 0), rpc?.error?.message);
  });
}

test("a body over 64 KB is rejected with 413", async (t) => {
  const args = { url: `https://example.com/${"a".repeat(2 ** 16)}` };
  const call = { ...whoami, params: { name: "create_link", arguments: args } };
  isProblem(t, await postMcp(url, call, auth), { status: 413, code: "body_too_large" });
});

test("a batch of more than 10 messages is rejected with 400", async (t) => {
  const batch = (length: number) =>
    postMcp(
      url,
      Array.from({ length }, (_, id) => ({ jsonrpc: "2.0", id, method: "ping" })),
      { ...auth, "mcp-protocol-version": "2025-03-26" },
    );
  t.is((await batch(10)).status, 200);
  isProblem(t, await batch(11), { status: 400, code: "invalid_request" });
});

const LISTS = Array.from({ length: 10 }, (_, id) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name: "list_links", arguments: { limit: 100 } },
}));

/** Returns the headers of batches of a new organization, whose links make a list as long as it can be. */
async function headersOfBatches(): Promise<Record<string, string>> {
  const token = await service.token(await service.createOrganization());
  const metadata = Object.fromEntries(
    Array.from({ length: 50 }, (_, index) => [`key-${index}`, "ä".repeat(500)]),
  );
  for (let count = 0; count < 3; count++) await apiAt(service.url, token).createLink({ metadata });
  return {
    ...bearer(token),
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-03-26",
  };
}

test("a batch whose client disconnects doesn't delay the next one", async (t) => {
  const headers = await headersOfBatches();
  const connection = new AbortController();
  const stopListening = service.onStatement((sql) => /\blinks\b/.test(sql) && connection.abort());
  const { signal } = connection;
  await t.throwsAsync(fetch(url, { method: "POST", headers, body: JSON.stringify(LISTS), signal }));
  stopListening();
  t.is((await postMcp(url, [whoami, { ...whoami, id: 3 }], headers)).status, 200);
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
    const headers = await headersOfBatches();
    const { hostname, port, host, pathname } = new URL(url);
    const body = JSON.stringify(LISTS);
    const lines = Object.entries({ ...headers, host, "content-length": Buffer.byteLength(body) });
    const client = new Program("python3", ["-c", STALLED_CLIENT, hostname, port]);
    t.teardown(() => client.stop());
    client.write(
      `POST ${pathname} HTTP/1.1\r\n${lines.map((line) => `${line.join(": ")}\r\n`).join("")}\r\n${body}`,
    );
    await client.says(/HTTP\/1.1 200/);
    t.is((await postMcp(url, [whoami, { ...whoami, id: 3 }], headers)).status, 200);
  });

test("an unknown method is a -32601 error, with status 404 in revision 2026-07-28", async (t) => {
  const legacy = await postMcp(url, { jsonrpc: "2.0", id: 1, method: "no/such" }, auth);
  t.is(legacy.rpc?.error?.code, -32601);
  const { message, headers } = modernRequest("no/such");
  const modern = await postMcp(url, message, { ...headers, ...auth });
  t.is(modern.status, 404);
  t.is(modern.rpc?.error?.code, -32601);
});

test("headers that contradict the message are rejected with 400 and -32020, and no tool is called", async (t) => {
  const { message, headers } = modernRequest("tools/call", {
    name: "create_link",
    arguments: { url: "https://example.com" },
  });
  for (const wrong of [{ "mcp-name": "whoami" }, { "mcp-method": "tools/list" }]) {
    const { status, rpc } = await postMcp(url, message, { ...headers, ...wrong, ...auth });
    t.is(status, 400);
    t.is(rpc?.error?.code, -32020);
  }
  const { body } = await apiAt(service.url).get<{ data: unknown[] }>("/v1/links", auth);
  t.deepEqual(body.data, []);
});

for (const version of ["1999-01-01", "2030-01-01", "x"]) {
  test(`the unknown revision ${version} is rejected with 400`, async (t) => {
    const { status, rpc } = await postMcp(url, whoami, { ...auth, "mcp-protocol-version": version });
    t.is(status, 400);
    t.truthy(rpc?.error);
  });
}

test("the endpoint is the same with a trailing slash", async (t) => {
  const { message, headers } = modernRequest("tools/call", { name: "whoami", arguments: {} });
  for (const [sent, extra] of [
    [whoami, {}],
    [message, headers],
  ] as const) {
    const { status, rpc } = await postMcp(`${url}/`, sent, { ...extra, ...auth });
    t.is(status, 200);
    t.is(organizationOf(rpc), app.id);
  }
  const get = await apiAt(service.url).send("GET", "/mcp/", { headers: auth });
  isProblem(t, get, { status: 405, code: "method_not_allowed" });
});

for (const accept of ["*/*", "application/*, text/*", undefined]) {
  test(`a client with ${accept ? `Accept: ${accept}` : "no Accept header"} is answered`, async (t) => {
    const headers = ["authorization", auth.authorization, "content-type", "application/json"];
    if (accept) headers.push("accept", accept);
    const { status, text } = await sendRaw(service.url, "/mcp", {
      method: "POST",
      headers,
      body: JSON.stringify(whoami),
    });
    t.is(status, 200, text);
  });
}

for (const accept of ["text/html", "image/*", "application/xml, text/plain"]) {
  test(`a client that accepts only ${accept} is rejected with 406`, async (t) => {
    t.is((await postMcp(url, whoami, { ...auth, accept })).status, 406);
  });
}

test("a path below the endpoint is not found", async (t) => {
  for (const path of ["/mcp//", "/mcp/x", "/mcp/x/", "/MCP", "/MCP/"]) {
    const reply = await postMcp(service.url + path, whoami, auth);
    t.is(reply.status, 404, path);
    t.is(reply.rpc?.result, undefined);
  }
});
