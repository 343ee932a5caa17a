import { randomBytes } from "node:crypto";
import test from "ava";
import { pino } from "pino";
import { readSettings } from "../../../server/config.ts";
import { startService } from "../../../server/service.ts";
import { modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { bearer, populate } from "../../harness/service.ts";

const database = await createTestDatabase();
const logged: { level: number; msg: string; err?: { message: string } }[] = [];
const service = await startService(
  readSettings({
    PORT: "0",
    DATABASE_URL: database.url,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
  }),
  pino({ level: "warn" }, { write: (line: string) => logged.push(JSON.parse(line)) }),
);
const url = `${service.urls.base}/mcp`;
const data = populate(service.urls.base, service.storage);
const token = await data.token(await data.createOrganization());
test.after.always(async () => {
  await service.close();
  await database.drop();
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
