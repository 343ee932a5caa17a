import type { ElicitResult, Tool } from "@modelcontextprotocol/client";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { ExecutionContext } from "ava";
import { z } from "zod";
import type { JSONSchema } from "zod/v4/core";
import type { ProblemBody } from "../../../resources/http/problem.ts";
import { type Reply, read } from "./api.ts";

/** The protocol revisions that the endpoint supports: one with discovery, and those with a handshake. */
export const ERAS = { "2026-07-28": { pin: "2026-07-28" }, "2025-11-25": "legacy" } as const;
export type Era = keyof typeof ERAS;
export const ALL_ERAS = Object.keys(ERAS) as Era[];

/**
 * Connects the official client with a token, in one protocol revision. The caller closes it. With `respond`, the client
 * declares that it can ask its user.
 */
export async function connectMcp(
  url: string,
  token: string,
  era: Era = "2026-07-28",
  respond?: (question: string) => ElicitResult,
): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1.0.0" },
    {
      versionNegotiation: { mode: ERAS[era] },
      ...(respond && { capabilities: { elicitation: { form: {} } } }),
    },
  );
  if (respond) client.setRequestHandler("elicitation/create", ({ params }) => respond(params.message));
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    authProvider: { token: async () => token },
  });
  await client.connect(transport);
  return client;
}

export async function connectUntilEnd(t: ExecutionContext, ...args: Parameters<typeof connectMcp>) {
  const client = await connectMcp(...args);
  t.teardown(() => client.close());
  return client;
}

/** An error of a tool. Its fields are those of an API problem. */
type ToolRefusal = Omit<ProblemBody, "type" | "title"> & { next: string };

export function refusalOf({ isError, content }: ToolResult): ToolRefusal | undefined {
  return isError ? JSON.parse(firstText(content)) : undefined;
}

type ToolResult = { isError?: boolean | undefined; content: unknown };

const firstText = (content: unknown) => (content as { text: string }[])[0]?.text ?? "";

export type RpcBody = {
  id: unknown;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: unknown };
};

/** The headers of a request without a protocol version, as clients of 2025 send it. */
export const MCP_HEADERS = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** Posts a message unchanged. `rpc` is the first of the `messages` of the response, which may be an event stream. */
export async function postMcp(
  url: string,
  message: unknown,
  headers: Record<string, string> = {},
): Promise<Reply<unknown> & { rpc: RpcBody | undefined; messages: RpcBody[] }> {
  const body = typeof message === "string" ? message : JSON.stringify(message);
  const reply = await read<RpcBody | RpcBody[]>(
    await fetch(url, { method: "POST", headers: { ...MCP_HEADERS, ...headers }, body }),
  );
  // Lines end as the standard of event streams says: other separators may be part of the JSON.
  const lines = reply.text.split(/[\r\n]+/).filter((line) => line.startsWith("data: "));
  const events = lines.map((line) => JSON.parse(line.slice("data: ".length)) as RpcBody);
  const messages = events.length > 0 ? events : [reply.body ?? []].flat();
  return { ...reply, rpc: messages[0], messages };
}

/** Returns the message and the headers of a request in revision 2026-07-28, from a client with some capabilities. */
export function modernRequest(method: string, params: object = {}, capabilities: object = {}) {
  const version = "2026-07-28";
  const { name, uri = name } = params as { name?: string; uri?: string };
  return {
    message: {
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": version,
          "io.modelcontextprotocol/clientCapabilities": capabilities,
        },
      },
    },
    headers: { "mcp-protocol-version": version, "mcp-method": method, ...(uri && { "mcp-name": uri }) },
  };
}

/** Returns the text of a structured result: the same without members that are null. */
export function textOf(structuredContent: unknown): string {
  return JSON.stringify(structuredContent, (_name, value) => (value === null ? undefined : value));
}

/** Calls a tool. Asserts that its structured content matches its output schema, and its text, which is compact. */
export async function callTool<Body>(
  t: ExecutionContext,
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
) {
  const result = await client.callTool({ name, arguments: args });
  t.falsy(result.isError, JSON.stringify(result.content));
  const { tools } = await client.listTools();
  const schema = outputSchemaOf(tools, name);
  const parsed = z.fromJSONSchema(schema as JSONSchema.JSONSchema).safeParse(result.structuredContent);
  t.true(parsed.success, parsed.error?.message);
  const text = firstText(result.content);
  t.is(text, textOf(result.structuredContent), "a model that sees only the text has the same");
  return result.structuredContent as Body;
}

type Schema = { description?: string; [keyword: string]: unknown };

/**
 * Returns the output schema of a tool. Where it says that a value is as another tool returns it, the other tool's schema
 * takes its place, so that claim is tested too.
 */
function outputSchemaOf(tools: readonly Tool[], name: string): Schema {
  const find = (wanted: string) => tools.find((tool) => tool.name === wanted)?.outputSchema as Schema;
  return JSON.parse(JSON.stringify(find(name)), (_name, schema?: Schema) => {
    const [, other] = /^See (\w+)\.$/.exec(String(schema?.description)) ?? [];
    return schema && other ? merge(schema, itemOf(find(other))) : schema;
  });
}

function itemOf(schema: Schema): Schema {
  const { data } = (schema.properties ?? {}) as { data?: { items: Schema } };
  return data?.items ?? schema;
}

function merge(own: Schema, other: Schema): Schema {
  return {
    type: "object",
    properties: { ...(other.properties as object), ...(own.properties as object) },
    required: [...((other.required ?? []) as string[]), ...((own.required ?? []) as string[])],
  };
}
