import test from "ava";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const token = await service.token(await service.createOrganization());
test.after.always(() => service.close());

const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

const MESSAGES: [what: string, body: string][] = [
  ["a message", nested(300_000)],
  ["its parameters", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":${nested(300_000)}}}`],
  [
    "its metadata",
    `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"a":${nested(300_000)}}}}`,
  ],
  [
    "an argument",
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_link","arguments":{"url":${nested(300_000)}}}}`,
  ],
  [
    "objects",
    `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}}`,
  ],
];

for (const [what, body] of MESSAGES) {
  test(`${what} nested 100,000 levels deep or more is a client error`, async (t) => {
    const answer = await fetch(`${service.url}/mcp`, {
      method: "POST",
      body,
      headers: {
        ...bearer(token),
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
      },
    });
    t.is(answer.status, 400);
    t.is(((await answer.json()) as { code: string }).code, "invalid_json");
  });
}

test("a link with metadata nested 100,000 levels deep is a client error, also with an Idempotency-Key", async (t) => {
  const answer = await fetch(`${service.url}/v1/links`, {
    method: "POST",
    body: `{"url":"https://example.com/","metadata":{"a":${nested(100_000)}}}`,
    headers: { ...bearer(token), "content-type": "application/json", "idempotency-key": "deep" },
  });
  t.is(answer.status, 422);
});
