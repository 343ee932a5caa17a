import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import test from "ava";
import {
  connectMcp,
  outputSchemaOf,
  postMcp,
  type RpcBody,
  refusalOf,
  textOf,
} from "../../harness/clients/mcp.ts";
import type { KnownObjects } from "../../harness/fuzz/known-objects.ts";
import { type McpRequest, mcpRequests } from "../../harness/fuzz/mcp-messages.ts";
import { type Prepared, prepareObjects } from "../../harness/fuzz/prepared-objects.ts";
import { sendSequences } from "../../harness/fuzz/sequences.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { bearer, startTestService } from "../../harness/service.ts";

export const stage = "long";

const REQUESTS = 1000;
const INTERNAL_ERROR = -32603;

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).host });
const url = `${service.url}/mcp`;
const prepare = await prepareObjects(service, receiver);
const client = await connectMcp(url, await service.token(await service.createOrganization()));
const { tools } = await client.listTools();
const ajv = new Ajv2020({ strict: false });
const outputs = new Map<string, ValidateFunction>(
  tools.map(({ name }) => [name, ajv.compile(outputSchemaOf(tools, name))]),
);
test.after.always(async () => {
  await client.close();
  await service.close();
  await receiver.close();
});

/** How often each tool succeeded. */
const successes = new Map(tools.map(({ name }) => [name, 0]));

type Call = { id?: unknown; method?: unknown; params?: { name?: string } } | null;
type ToolResult = {
  inputRequests?: object;
  isError?: boolean;
  content: { text?: string }[];
  structuredContent?: { id?: string; deleted?: boolean };
};

/** Sends a request. Fails if the responses are not JSON-RPC, or if a result does not match the schema of its tool. */
async function send({ token, known }: Prepared, { message, headers }: McpRequest): Promise<void> {
  const text = typeof message === "string" ? message : JSON.stringify(message);
  const sent = known.resolve(text, (message as Call)?.params?.name);
  const more = Object.entries(headers).map(([name, value]) => [name, known.resolve(value)]);
  const reply = await postMcp(url, sent, { ...bearer(token), ...Object.fromEntries(more) });
  const { status, messages } = reply;
  const [type] = (reply.headers.get("content-type") ?? "").split(";");
  const exchange = `${sent.slice(0, 1000)} was answered with ${status} ${type} ${reply.text}`;

  assert.ok(status < 500, exchange);
  if (type === "application/problem+json")
    return assert.equal((reply.body as { status: number }).status, status);
  if (status === 202) return assert.equal(reply.text, "", exchange);
  assert.ok(type === "application/json" || type === "text/event-stream", exchange);
  assert.ok(messages.length > 0, exchange);
  const calls = callsIn(sent);
  for (const response of messages) {
    const call = calls.find((each) => each?.id === response.id);
    assertResponse(response, call, exchange);
    const name = call?.method === "tools/call" ? call.params?.name : undefined;
    if (name && response.result) assertResult(name, response.result as ToolResult, known);
  }
}

function callsIn(sent: string): Call[] {
  try {
    return [JSON.parse(sent)].flat();
  } catch {
    return [];
  }
}

/** JSON-RPC 2.0 §5: a response has the id of its request and either a result or an error. */
function assertResponse(response: RpcBody & { jsonrpc?: unknown }, call: Call | undefined, exchange: string) {
  const { jsonrpc, id, result, error } = response;
  assert.equal(jsonrpc, "2.0", exchange);
  assert.ok(call || (error && id === null), exchange);
  assert.notEqual(result === undefined, error === undefined, exchange);
  if (!error) return;
  assert.ok(Number.isInteger(error.code) && typeof error.message === "string", exchange);
  // The SDK has this code for invalid parameters of all requests but tools/call, too. Its message then lists what is wrong.
  const isInvalid = call?.method !== "tools/call" && /^\[\s*\{/.test(error.message);
  assert.ok(error.code !== INTERNAL_ERROR || isInvalid, exchange);
}

function assertResult(name: string, result: ToolResult, known: KnownObjects): void {
  const exchange = `${name} returned ${JSON.stringify(result)}`;
  const refusal = refusalOf(result);
  if (refusal) {
    assert.ok(refusal.status >= 400 && refusal.status < 500 && refusal.code, exchange);
    return;
  }
  // A question to the user.
  if (result.inputRequests) return;
  const { content, structuredContent: output } = result;
  const matches = outputs.get(name);
  assert.ok(matches?.(output), `${exchange}: ${ajv.errorsText(matches?.errors)}`);
  assert.equal(content[0]?.text, textOf(output), exchange);
  successes.set(name, (successes.get(name) ?? 0) + 1);
  const text = JSON.stringify(output);
  known.setCursor(name, text);
  if (output?.deleted) known.remove(output.id as string);
  else if (!/^(get|list)_/.test(name)) known.add(text);
}

test("random messages, valid and nearly valid, are answered as the protocol and the tools say", async (t) => {
  const missed = () => [...successes].filter(([, count]) => count === 0);
  const start = async () => {
    const prepared = await prepare();
    return (request: McpRequest) => send(prepared, request);
  };
  await sendSequences(mcpRequests(tools), REQUESTS, start, () => missed().length === 0);
  t.deepEqual(missed(), [], "each tool has succeeded");
});
