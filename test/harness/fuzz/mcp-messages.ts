import type { Tool } from "@modelcontextprotocol/client";
import fc from "fast-check";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import { modernRequest } from "../clients/mcp.ts";
import { toHeaders } from "./headers.ts";
import { ODD_TEXTS, ODD_VALUES } from "./odd-values.ts";
import { createGenerator, seldom } from "./schema-values.ts";
import { vocabularyOf } from "./vocabulary.ts";

/** A message, or several, that may contain references to known objects. */
export type McpRequest = { message: unknown; headers: Record<string, string> };
type Message = { method?: unknown; params?: { name?: unknown } };

/** Generates calls of tools, other requests, and messages that the protocol forbids. */
export function mcpRequests(tools: readonly Tool[]): fc.Arbitrary<McpRequest> {
  const calls = fc.oneof(...tools.map(callsOf));
  const requests = fc.oneof(
    { weight: 8, arbitrary: calls },
    { weight: 1, arbitrary: otherRequests },
    { weight: 1, arbitrary: reads },
  );
  const batches = fc.array(requests, { maxLength: 12 }).map((batch) => ({
    message: batch.map(({ message }, id) => ({ ...(message as Message), id })),
    headers: {},
  }));
  return fc.oneof(
    { weight: 15, arbitrary: requests },
    { weight: 3, arbitrary: fc.tuple(requests, oddMembers, oddHeaders).map(distort) },
    { weight: 1, arbitrary: batches },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(...ODD_VALUES, "{", '{"jsonrpc":"2.0"')
        .map((message) => ({ message, headers: {} })),
    },
  );
}

function callsOf({ name, inputSchema }: Tool): fc.Arbitrary<McpRequest> {
  const inputs = (isOdd: boolean) => {
    const { values, objects } = createGenerator(vocabularyOf(name), isOdd);
    const schema = inputSchema as JsonSchema;
    return isOdd ? values(schema) : objects(schema);
  };
  return requestsFor(
    "tools/call",
    fc
      .oneof({ weight: 4, arbitrary: inputs(false) }, { weight: 1, arbitrary: inputs(true) })
      .map((input) => ({ name, arguments: input as object })),
  );
}

const text = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom("links", "slug", "docs", "mcp", "tag", "weekly_report", "<run>-1"),
  },
  { weight: 1, arbitrary: fc.constantFrom(...ODD_TEXTS) },
);
const uri = fc.oneof(
  fc.constantFrom("linkgate://links/{slug}", "linkgate://docs/{+path}"),
  fc.tuple(text, text).map(([kind, name]) => `linkgate://${kind}/${name}`),
  fc.constantFrom(...ODD_TEXTS),
);
const promptName = fc.oneof(fc.constantFrom("create_campaign", "weekly_report", "clean_up_links"), text);
const ref = fc.oneof(
  uri.map((one) => ({ type: "ref/resource", uri: one })),
  promptName.map((name) => ({ type: "ref/prompt", name })),
);

/** Reads of resources, prompts and completions. */
const reads = fc.oneof(
  requestsFor("resources/read", fc.record({ uri })),
  requestsFor(
    "prompts/get",
    fc.record({
      name: promptName,
      arguments: fc.dictionary(fc.constantFrom("urls", "campaign", "tag", "days"), text),
    }),
  ),
  requestsFor("completion/complete", fc.record({ ref, argument: fc.record({ name: text, value: text }) })),
);

const METHODS = [
  "ping",
  "initialize",
  "tools/list",
  "server/discover",
  "resources/list",
  "resources/templates/list",
  "prompts/list",
  "subscriptions/listen",
  "notifications/initialized",
];
const otherRequests = fc
  .constantFrom(...METHODS, ...ODD_TEXTS)
  .chain((method) =>
    requestsFor(
      method,
      fc.oneof(
        fc.constant({}),
        fc.record({ cursor: fc.constantFrom(...ODD_VALUES) }),
        fc.constant(INITIALIZE),
      ),
    ),
  );
const INITIALIZE = {
  protocolVersion: "2025-06-18",
  capabilities: {},
  clientInfo: { name: "test", version: "1" },
};

/** Generates requests of a method, in a revision with discovery or with a handshake. */
function requestsFor(method: string, params: fc.Arbitrary<object>): fc.Arbitrary<McpRequest> {
  const capabilities = fc.constantFrom({}, {}, {}, {}, { elicitation: {} });
  const modern = fc
    .tuple(params, capabilities)
    .map(([values, declared]) => modernRequest(method, values, declared));
  const legacy = params.map((values) => ({
    message: { jsonrpc: "2.0", id: 1, method, params: values },
    headers: {},
  }));
  return fc.oneof(modern, legacy).map(({ message, headers }) => ({ message, headers: toHeaders(headers) }));
}

const oddValue = fc.constantFrom(...ODD_VALUES);
const oddMembers = fc.record(
  {
    jsonrpc: seldom(fc.constant("2.0"), oddValue),
    id: fc.oneof(fc.constantFrom("a", 0, -1, undefined), oddValue),
    method: seldom(fc.constant("tools/call"), oddValue),
    params: oddValue,
    more: oddValue,
  },
  { requiredKeys: [] },
);
const oddHeaders = fc.record(
  {
    accept: fc.constantFrom("*/*", "application/json", "text/event-stream", "text/html", ""),
    "content-type": seldom(
      fc.constant("application/json"),
      fc.constantFrom("", "text/plain", "application/json; charset=utf-16"),
    ),
    "mcp-protocol-version": fc.constantFrom(
      "2024-11-05",
      "2025-03-26",
      "2025-11-25",
      "2026-07-28",
      "2099-01-01",
      "x",
      "",
    ),
    "mcp-method": fc.constantFrom("tools/call", "ping", ""),
    "mcp-name": fc.constantFrom("whoami", ""),
    "mcp-session-id": fc.constantFrom("x", ""),
    "last-event-id": fc.constantFrom("0", "x"),
    authorization: seldom(fc.constant(undefined), fc.constantFrom("", "Bearer unknown", "Bearer <reader>")),
  },
  { requiredKeys: [] },
);

/** Replaces some members of a message and some headers. */
function distort([{ message, headers }, members, others]: [McpRequest, object, object]): McpRequest {
  return { message: { ...(message as Message), ...members }, headers: toHeaders({ ...headers, ...others }) };
}
