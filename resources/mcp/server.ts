import {
  type AuthInfo,
  type CallToolResult,
  createMcpHandler,
  fromJsonSchema,
  type JsonSchemaType,
  type jsonSchemaValidator,
  McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Context } from "koa";
import { covers } from "../access/scopes.ts";
import { toProblem } from "../http/problem.ts";
import { nextStepOf } from "../http/problem-codes.ts";
import { type JsonSchema, toJsonSchema } from "../openapi/json-schema.ts";
import { createWorkQueue } from "../work-queue.ts";
import { ARGUMENTS, compactSchema, KNOWN_ARGUMENTS, RESULTS } from "./compact-schema.ts";
import { type Confirmations, createConfirmations } from "./confirmation.ts";
import type { Offer } from "./offer.ts";
import { registerPrompts } from "./prompts.ts";
import { type McpRequest, type ResourceSources, registerResources } from "./resources.ts";
import type { Tool, ToolResult } from "./tool.ts";

// Lists depend only on the token, and change only with a new version of the service.
const CACHE_MS = 60 * 60 * 1000;
const OF_TOKEN = { ttlMs: CACHE_MS, cacheScope: "private" } as const;
const OF_VERSION = { ttlMs: CACHE_MS, cacheScope: "public" } as const;

export type McpOptions = ResourceSources &
  Offer & {
    mcpUrl: string;
    /** Signs the questions to users; shared by all processes. */
    signingSecret: string;
    extensions: readonly string[];
    version: string;
    onError(error: unknown, ctx?: Context): void;
  };

/** @returns a function that creates the server of one request, with the tools that its scopes allow */
function createServerFactory(options: McpOptions, confirmations: Confirmations) {
  const { tools, prompts, instructions, extensions, version } = options;
  const known = new Set<string>();
  const described = tools.map((tool) => ({ tool, ...schemasOf(tool, known) }));

  return function createServer(request: McpRequest): McpServer {
    const server = new McpServer(
      { name: "linkgate", title: "linkgate", version },
      {
        instructions,
        capabilities: {
          tools: { listChanged: false },
          resources: { listChanged: false },
          prompts: { listChanged: false },
          completions: {},
          extensions: Object.fromEntries(extensions.map((id) => [id, {}])),
        },
        cacheHints: {
          "tools/list": OF_TOKEN,
          "prompts/list": OF_TOKEN,
          "resources/templates/list": OF_TOKEN,
          "resources/list": OF_VERSION,
          "server/discover": OF_VERSION,
        },
        requestState: { verify: confirmations.verify },
      },
    );
    registerResources(server, request, options);
    registerPrompts(server, prompts, request.caller.scopes);
    for (const { tool, inputSchema, outputSchema } of described) {
      if (!covers(request.caller.scopes, tool.scopes)) continue;
      const { name, title, annotations, fieldsAsIn } = tool;
      const description = fieldsAsIn
        ? `${tool.description} The fields are those of ${fieldsAsIn}.`
        : tool.description;
      const call = async (input: unknown, ctx: ServerContext) => {
        const fields: Record<string, unknown> = { ...(input as object | undefined) };
        const stop = await confirmations.confirm(tool, fields, ctx);
        if (typeof stop !== "string") return stop ?? toToolResult(await tool.run(request.caller, fields));
        return toToolResult({ body: { deleted: false, id: fields.id, reason: stop } });
      };
      server.registerTool(
        name,
        { title, description, inputSchema, outputSchema, annotations },
        (input, ctx) => call(input, ctx).catch((error) => toErrorResult(error, request)),
      );
    }
    return server;
  };
}

/** Text, because clients of the 2025 revisions would validate structured content against the output schema. */
function toErrorResult(error: unknown, { requestId, report }: McpRequest): CallToolResult {
  const problem = toProblem(error, () => report(error));
  const body = { ...problem.toJSON(), next: nextStepOf(problem), request_id: requestId };
  return { isError: true, content: [{ type: "text", text: JSON.stringify(body) }] };
}

/**
 * The text is the result in compact JSON (MCP, "Structured Content"), without members that are null: many hosts show a
 * model only the text, and a summary would lack what the next call needs, such as an ID or a cursor.
 */
function toToolResult({ body, isReplayed }: ToolResult): CallToolResult {
  return {
    content: [{ type: "text", text: JSON.stringify(body, withoutNull) }],
    structuredContent: body,
    ...(isReplayed && { _meta: { idempotency_replayed: true } }),
  };
}

function withoutNull(_name: string, value: unknown): unknown {
  return value === null ? undefined : value;
}

/** `known` has what earlier tools say of their arguments, which a model needn't read again. */
function schemasOf(tool: Tool, known: Set<string>) {
  const dropped = tool.fieldsAsIn ? KNOWN_ARGUMENTS : ARGUMENTS;
  const input = withoutKnown(compactSchema(toJsonSchema(tool.input, "input"), dropped), known);
  const output = compactSchema(toJsonSchema(tool.output, "output"), RESULTS);
  return {
    inputSchema: fromJsonSchema(asJsonSchemaType(input), acceptAll),
    outputSchema: fromJsonSchema(asJsonSchemaType(output), acceptAll),
  };
}

function withoutKnown({ properties = {}, ...schema }: JsonSchema, known: Set<string>): JsonSchema {
  const describeOnce = ([name, property]: [string, JsonSchema]) => {
    const { description, ...rest } = property;
    const said = `${name}: ${description}`;
    if (description === undefined || known.has(said)) return [name, rest];
    known.add(said);
    return [name, property];
  };
  const shown = Object.entries(properties as Record<string, JsonSchema>).map(describeOnce);
  return { ...schema, properties: Object.fromEntries(shown) };
}

/** Passes a schema to the SDK: Zod and the SDK declare the same JSON Schema with types that don't match. */
function asJsonSchemaType(schema: object): JsonSchemaType {
  return schema as JsonSchemaType;
}

/** The operation validates its input, and what it returns is that of REST. */
const acceptAll: jsonSchemaValidator = {
  getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
};

export function createHandler(options: McpOptions) {
  const { mcpUrl, signingSecret, onError } = options;
  const confirmations = createConfirmations(signingSecret, (ctx) => requestOf(ctx.http?.authInfo).caller);
  const createServer = createServerFactory(options, confirmations);
  const handler = createMcpHandler(({ authInfo }) => createServer(requestOf(authInfo)), {
    onerror: (error) => void (isClientError(error) || onError(error)),
  });
  const enqueue = createWorkQueue();
  return async function answer(ctx: Context, request: McpRequest): Promise<Response> {
    const { caller } = request;
    const authInfo: AuthInfo = {
      token: "", // never passed on: the tools don't need it
      clientId: caller.clientId,
      scopes: [...caller.scopes],
      expiresAt: caller.expiresAt,
      extra: { request },
    };
    const headers = ctx.headers as Record<string, string>;
    const parsedBody = ctx.request.body;
    const signal = disconnection(ctx);
    const incoming = new Request(mcpUrl, { method: "POST", headers, signal });
    const fetched = () => handler.fetch(incoming, { authInfo, parsedBody });
    if (!Array.isArray(parsedBody)) return fetched();
    // The next batch doesn't wait until the client has read this one.
    return enqueue(caller.organizationId, () => readWhole(fetched()));
  };
}

/** Resolves when the whole body of a response is in memory. */
async function readWhole(answer: Promise<Response>): Promise<Response> {
  const response = await answer;
  return response.body ? new Response(await response.arrayBuffer(), response) : response;
}

/** Returns a signal that is aborted if the client disconnects before the whole response was sent. */
function disconnection({ res }: Context): AbortSignal {
  const controller = new AbortController();
  res.once("close", () => res.writableFinished || controller.abort());
  return controller.signal;
}

function requestOf(authInfo: AuthInfo | undefined): McpRequest {
  return authInfo?.extra?.request as McpRequest;
}

// How the library's messages begin for requests that it answers with a 4xx.
const CLIENT_ERRORS =
  /^(Rejected inbound request|Unsupported Media Type|Not Acceptable|Bad Request|Invalid Request|Parse error|Unsupported protocol version)/;

/** Returns whether an error is the client's, which has been answered and needs no log entry. */
function isClientError({ message }: Error): boolean {
  return CLIENT_ERRORS.test(message);
}
