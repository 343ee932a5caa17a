import test from "ava";
import { ALL_ERAS, connectMcp, MCP_HEADERS, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const url = `${service.url}/mcp`;
const token = await service.token(await service.createOrganization());
test.after.always(() => service.close());

// About 5,000 tokens of a model's context.
const MAX_BYTES = 20_000;
const HOUR_MS = 60 * 60 * 1000;
const LEGACY_LIST = { jsonrpc: "2.0", id: 1, method: "tools/list" };

const ask = (method: string, params = {}) => {
  const { message, headers } = modernRequest(method, params);
  return postMcp(url, message, { ...headers, ...bearer(token) });
};

for (const [era, list] of [
  ["2026-07-28", () => ask("tools/list")],
  ["2025-11-25", () => postMcp(url, LEGACY_LIST, bearer(token))],
] as const) {
  test(`${era}: the list of all tools takes less than 20 KB`, async (t) => {
    const { rpc, text } = await list();
    const { tools = [] } = (rpc?.result ?? {}) as { tools?: unknown[] };
    t.is(tools.length, 22);
    t.true(Buffer.byteLength(text) < MAX_BYTES, `${Buffer.byteLength(text)} bytes`);
  });
}

test("every argument has one type, because validators of several hosts accept no unions", async (t) => {
  const { rpc } = await ask("tools/list");
  const tools = rpc?.result?.tools as { name: string; inputSchema: object }[];
  for (const { name, inputSchema } of tools)
    t.notRegex(JSON.stringify(inputSchema), /"(anyOf|oneOf|allOf)":|"type":\[/, name);
});

test("a client may cache lists for itself, and what is the same for every token for everyone", async (t) => {
  for (const [method, cacheScope] of [
    ["tools/list", "private"],
    ["prompts/list", "private"],
    ["resources/templates/list", "private"],
    ["resources/list", "public"],
    ["server/discover", "public"],
  ] as const) {
    t.like((await ask(method)).rpc?.result, { ttlMs: HOUR_MS, cacheScope }, method);
  }
});

test("the description of the server is the same for every token", async (t) => {
  const reader = await service.token(await service.createOrganization(), { scope: "links:read" });
  const { message, headers } = modernRequest("server/discover");
  const other = await postMcp(url, message, { ...headers, ...bearer(reader) });
  t.deepEqual(other.rpc?.result, (await ask("server/discover")).rpc?.result);
});

test("clients of the 2025 revisions get no fields that they don't know", async (t) => {
  const { rpc } = await postMcp(url, LEGACY_LIST, bearer(token));
  t.deepEqual(Object.keys(rpc?.result ?? {}), ["tools"]);
});

type Hints = [readOnly: boolean, destructive: boolean, idempotent: boolean, openWorld: boolean];
const READ: Hints = [true, false, true, false];
const CREATE: Hints = [false, false, false, false];
const REPLACE: Hints = [false, true, true, false];
const SEND: Hints = [false, false, false, true];
const HINTS: Record<string, Hints> = {
  whoami: READ,
  get_link: READ,
  list_links: READ,
  get_link_analytics: READ,
  get_analytics: READ,
  create_link: CREATE,
  create_links: CREATE,
  upsert_link: REPLACE,
  update_link: REPLACE,
  delete_link: REPLACE,
  list_events: READ,
  list_webhooks: READ,
  get_webhook: READ,
  create_webhook: CREATE,
  update_webhook: REPLACE,
  delete_webhook: REPLACE,
  rotate_webhook_secret: [false, true, false, false],
  test_webhook: SEND,
  list_webhook_deliveries: READ,
  get_webhook_delivery: READ,
  resend_webhook_delivery: SEND,
  resend_failed_webhook_deliveries: SEND,
};

for (const era of ALL_ERAS) {
  test(`${era}: every tool states all four hints`, async (t) => {
    const client = await connectMcp(url, token, era);
    const { tools } = await client.listTools();
    const hints = tools.map(({ name, annotations }) => [
      name,
      [
        annotations?.readOnlyHint,
        annotations?.destructiveHint,
        annotations?.idempotentHint,
        annotations?.openWorldHint,
      ],
    ]);
    t.deepEqual(Object.fromEntries(hints), HINTS);
    await client.close();
  });

  test(`${era}: the instructions are four sentences that name the tools to start with`, async (t) => {
    const client = await connectMcp(url, token, era);
    const instructions = client.getInstructions() ?? "";
    t.is(instructions.split(/\.(?:\s|$)/).filter(Boolean).length, 4);
    for (const name of ["whoami", "list_links", "upsert_link", "get_link_analytics"]) {
      t.true(instructions.includes(name), name);
    }
    await client.close();
  });

  test(`${era}: the lists of tools, resources and prompts are announced as constant`, async (t) => {
    const client = await connectMcp(url, token, era);
    for (const what of ["tools", "resources", "prompts"] as const) {
      t.deepEqual(client.getServerCapabilities()?.[what], { listChanged: false });
    }
    await client.close();
  });
}

for (const [name, notifications] of Object.entries({
  "changes of the tools": { toolsListChanged: true },
  "changes of a resource": { resourceSubscriptions: ["https://example.com/"] },
  nothing: {},
})) {
  test(`a subscription to ${name} is refused as an unknown method, and opens no stream`, async (t) => {
    const { message, headers } = modernRequest("subscriptions/listen");
    const body = JSON.stringify({ ...message, params: { ...message.params, notifications } });
    const init = { method: "POST", body, headers: { ...MCP_HEADERS, ...headers, ...bearer(token) } };
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(30_000) });
    t.is(response.status, 404);
    t.is(response.headers.get("content-type"), "application/json; charset=utf-8");
    t.like(await response.json(), { jsonrpc: "2.0", id: 1, error: { code: -32601 } });
  });
}

test("a subscription without a token is a 401", async (t) => {
  const { message, headers } = modernRequest("subscriptions/listen");
  t.is((await postMcp(url, message, headers)).status, 401);
});
