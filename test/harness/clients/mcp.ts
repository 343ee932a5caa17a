import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { ExecutionContext } from "ava";
import { z } from "zod";
import type { JSONSchema } from "zod/v4/core";
import { type Reply, read } from "./api.ts";

/** The protocol revisions that the endpoint supports: one with discovery, and those with a handshake. */
export const ERAS = { "2026-07-28": { pin: "2026-07-28" }, "2025-11-25": "legacy" } as const;
export type Era = keyof typeof ERAS;
export const ALL_ERAS = Object.keys(ERAS) as Era[];

/** Connects the official client with a token, in one protocol revision. The caller closes it. */
export async function connectMcp(url: string, token: string, era: Era = "2026-07-28"): Promise<Client> {
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: ERAS[era] } });
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    authProvider: { token: async () => token },
  });
  await client.connect(transport);
  return client;
}

/** An error of a tool. Its fields are those of an API problem. */
export type ToolRefusal = {
  status: number;
  code: string;
  detail: string;
  /** How the agent can resolve it. */
  next: string;
  request_id: string;
  errors?: { field: string; message: string }[];
};

/** Parses the error in the result of a tool; undefined if the call succeeded. */
export function refusalOf(result: {
  isError?: boolean | undefined;
  content: unknown;
}): ToolRefusal | undefined {
  if (!result.isError) return undefined;
  const [first] = result.content as { type: string; text: string }[];
  return JSON.parse(first?.text ?? "");
}

/** A JSON-RPC response. */
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

/** Posts a message unchanged. `rpc` is the first message of the response, which may be an event stream. */
export async function postMcp(
  url: string,
  message: unknown,
  headers: Record<string, string> = {},
): Promise<Reply<unknown> & { rpc: RpcBody | undefined }> {
  const body = typeof message === "string" ? message : JSON.stringify(message);
  const reply = await read<RpcBody>(
    await fetch(url, { method: "POST", headers: { ...MCP_HEADERS, ...headers }, body }),
  );
  const [, data] = /^data: (.*)$/m.exec(reply.text) ?? [];
  return { ...reply, rpc: data === undefined ? reply.body : (JSON.parse(data) as RpcBody) };
}

/** Returns the message and the headers of a request in revision 2026-07-28. */
export function modernRequest(method: string, params: { name?: string; arguments?: object } = {}) {
  const version = "2026-07-28";
  return {
    message: {
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": version,
          "io.modelcontextprotocol/clientCapabilities": {},
        },
      },
    },
    headers: {
      "mcp-protocol-version": version,
      "mcp-method": method,
      ...(params.name && { "mcp-name": params.name }),
    },
  };
}

/** Calls a tool. Asserts that its structured content matches its output schema and its text. */
export async function callTool<Body>(
  t: ExecutionContext,
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
) {
  const result = await client.callTool({ name, arguments: args });
  t.falsy(result.isError, JSON.stringify(result.content));
  const { tools } = await client.listTools();
  const schema = tools.find((tool) => tool.name === name)?.outputSchema;
  const parsed = z.fromJSONSchema(schema as JSONSchema.JSONSchema).safeParse(result.structuredContent);
  t.true(parsed.success, parsed.error?.message);
  const [content] = result.content as { type: string; text: string }[];
  t.deepEqual(JSON.parse(content?.text ?? ""), result.structuredContent);
  return result.structuredContent as Body;
}
