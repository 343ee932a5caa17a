import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { createLog } from "../../../server/log.ts";
import { startService } from "../../../server/process/service.ts";
import { readSettings } from "../../../server/settings/config.ts";
import { modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { addressOf, startServer, stopPrograms } from "../../harness/program.ts";
import { bearer, populate, startTestService } from "../../harness/service.ts";

const database = await createTestDatabase();
const logged: { level: string; msg: string; err?: { message: string } }[] = [];
const service = await startService(
  readSettings({
    PORT: "0",
    DATABASE_URL: database.url,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
  }),
  createLog("warn", {
    write: (line) => void logged.push(JSON.parse(line)),
    loss: () => ({ lines: 0 }),
  }),
);
const url = `${service.urls.base}/mcp`;
const data = populate(service.urls.base, service.storage);
const token = await data.token(await data.createOrganization());

const standard = await startTestService();
const standardToken = await standard.token(await standard.createOrganization());

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-mcp-errors-"));
const settings = {
  PORT: "0",
  DATABASE_URL: `sqlite:${folder}/mcp.sqlite`,
  ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64url"),
};
const storage = openStorage(settings.DATABASE_URL, Buffer.from(settings.ENCRYPTION_KEY, "base64url"));
await storage.migrate();
const { client } = await storage.organizations.create("Agents", "growth", OPERATOR);
await storage.close();
if (!client) throw new Error("no client was created");
const server = startServer({ settings, cwd: folder });
const serverUrl = await addressOf(server);
const auth = bearer(await populate(serverUrl, storage).token(client));

test.after.always(async () => {
  await service.close();
  await database.drop();
});
test.after.always(() => standard.close());
test.after.always(() => {
  stopPrograms();
  rmSync(folder, { recursive: true, force: true });
});

const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
const modern = modernRequest("tools/list");
const MISTAKES: [what: string, body: unknown, headers: Record<string, string>][] = [
  ["invalid JSON", "{", {}],
  ["another content type", "x", { "content-type": "text/plain" }],
  ["a type that is not accepted", list, { accept: "text/html" }],
  ["an unknown revision", list, { "mcp-protocol-version": "1999-01-01" }],
  ["an unknown method", { ...list, method: "nothing" }, {}],
  ["an unknown tool", { ...list, method: "tools/call", params: { name: "nothing" } }, {}],
  ["an unknown resource", { ...list, method: "resources/read", params: { uri: "linkgate://links/x" } }, {}],
  ["text that isn't a URI", { ...list, method: "resources/read", params: { uri: "x" } }, {}],
  ["an unknown prompt", { ...list, method: "prompts/get", params: { name: "nothing" } }, {}],
  [
    "a prompt without its arguments",
    { ...list, method: "prompts/get", params: { name: "create_campaign" } },
    {},
  ],
  [
    "a completion of nothing",
    {
      ...list,
      method: "completion/complete",
      params: { ref: { type: "ref/prompt", name: "nothing" }, argument: { name: "a", value: "" } },
    },
    {},
  ],
  ["an empty batch", [], {}],
  ["a batch over the limit", Array.from({ length: 500 }, () => list), {}],
  [
    "two initialize requests in one batch",
    [1, 2].map((id) => ({ ...list, id, method: "initialize", params: {} })),
    {},
  ],
  ["not an object", "null", {}],
  ["a header that contradicts the message", modern.message, { ...modern.headers, "mcp-method": "ping" }],
  ["an unknown method of the 2026 revision", { ...modern.message, method: "nothing" }, modern.headers],
];
for (const [what, body, headers] of MISTAKES) {
  test.serial(`${what} is a client error and is not logged`, async (t) => {
    const reply = await postMcp(url, body, { ...headers, ...bearer(token) });
    t.true(reply.status < 500, reply.text);
    t.deepEqual(
      logged.splice(0).map(({ msg, err }) => `${msg}: ${err?.message}`),
      [],
    );
  });
}

const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

const MESSAGES: [what: string, body: string][] = [
  ["a message", nested(30_000)],
  ["its parameters", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":${nested(30_000)}}}`],
  [
    "its metadata",
    `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"a":${nested(30_000)}}}}`,
  ],
  [
    "an argument",
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_link","arguments":{"url":${nested(30_000)}}}}`,
  ],
  [
    "objects",
    `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}}`,
  ],
];

for (const [what, body] of MESSAGES) {
  test(`${what} nested 10,000 levels deep or more is a client error`, async (t) => {
    const answer = await fetch(`${standard.url}/mcp`, {
      method: "POST",
      body,
      headers: {
        ...bearer(standardToken),
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
      },
    });
    t.is(answer.status, 400);
    t.is(((await answer.json()) as { code: string }).code, "invalid_json");
  });
}

test("a link with metadata nested 30,000 levels deep is a client error, also with an Idempotency-Key", async (t) => {
  const answer = await fetch(`${standard.url}/v1/links`, {
    method: "POST",
    body: `{"url":"https://example.com/","metadata":{"a":${nested(30_000)}}}`,
    headers: { ...bearer(standardToken), "content-type": "application/json", "idempotency-key": "deep" },
  });
  t.is(answer.status, 400);
});

test("requests that are the client's mistake are answered and not logged as errors", async (t) => {
  const { message, headers } = modernRequest("tools/list");
  const future = structuredClone(message);
  future.params._meta["io.modelcontextprotocol/protocolVersion"] = "2099-01-01";
  const mistakes: [body: unknown, headers: object][] = [
    [future, { ...headers, "mcp-protocol-version": "2099-01-01" }],
    [message, { ...headers, "mcp-protocol-version": "2099-01-01" }],
    [message, { ...headers, "mcp-method": "tools/call" }],
    [{ jsonrpc: "2.0", id: 1, method: "tools/list" }, { accept: "text/html" }],
    [message, { ...headers, "content-type": "text/plain" }],
    ["{", headers],
    [{ jsonrpc: "2.0", id: 1 }, {}],
  ];
  for (const [body, extra] of mistakes) {
    const { status, text } = await postMcp(`${serverUrl}/mcp`, body, { ...auth, ...extra });
    t.true(status >= 400 && status < 500, `${status} ${text.slice(0, 200)}`);
  }
  const { stdout, stderr } = await server.stop();
  t.notRegex(stdout + stderr, /"level":"error"|unexpected error/);
  t.regex(stdout, /"\/mcp"/, "the requests themselves are logged");
});
