import {
  type CallToolResult,
  fromJsonSchema,
  type InputRequiredResult,
  type JsonSchemaType,
  type jsonSchemaValidator,
  McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import { covers } from "../access/scopes.ts";
import { validate } from "../http/validate.ts";
import type { RunOnce } from "../idempotency/run-once.ts";
import { lazy } from "../lazy.ts";
import { toJsonSchema } from "../openapi/json-schema.ts";
import { ARGUMENTS, compactSchema, KNOWN_ARGUMENTS, RESULTS } from "./compact-schema.ts";
import { type Confirmations, canAsk } from "./confirmation.ts";
import { toErrorResult } from "./errors.ts";
import { inputSchemaOf, runTool, type Tool } from "./tool.ts";

/** The context of one HTTP request, as tools need it. */
export type ToolRequest = { caller: AuthenticatedCaller; requestId: string; report(error: unknown): void };

const INSTRUCTIONS =
  "A link is a short URL that redirects to its destination and belongs to the organization that whoami returns. Before \
you create a link, search for an existing one with list_links. If you have your own ID for a link, pass it to upsert_link as \
external_id, which creates the link once and updates it after that. get_link_analytics and get_analytics return clicks by \
UTC day, referrer and country, with known bots counted separately.";

// The tools depend only on the token, and change only with a new version of the service.
const CACHE_MS = 60 * 60 * 1000;

type ServerOptions = {
  tools: Tool[];
  runOnce: RunOnce;
  confirmations: Confirmations;
  /** The IDs of supported extensions, which `server/discover` lists. */
  extensions: readonly string[];
  version: string;
};

/** @returns a function that creates the server of one request, with the tools that its scopes allow */
export function createServerFactory({ tools, runOnce, confirmations, extensions, version }: ServerOptions) {
  // Converting the schemas takes longer than most of the startup.
  const described = lazy(() => tools.map((tool) => ({ tool, ...schemasOf(tool) })));

  return function createServer(request: ToolRequest): McpServer {
    const server = new McpServer(
      { name: "linkgate", title: "linkgate", version },
      {
        instructions: INSTRUCTIONS,
        capabilities: {
          tools: { listChanged: false },
          extensions: Object.fromEntries(extensions.map((id) => [id, {}])),
        },
        cacheHints: {
          "tools/list": { ttlMs: CACHE_MS, cacheScope: "private" },
          "server/discover": { ttlMs: CACHE_MS, cacheScope: "public" },
        },
        requestState: { verify: confirmations.verify },
      },
    );
    for (const { tool, inputSchema, outputSchema } of described()) {
      if (!covers(request.caller.scopes, tool.scopes)) continue;
      const { name, title, annotations, fieldsAsIn } = tool;
      const description = fieldsAsIn
        ? `${tool.description} The fields are those of ${fieldsAsIn}.`
        : tool.description;
      const call = async (input: unknown, ctx: ServerContext) => {
        const fields = { ...(input as object | undefined) };
        const stop = await confirm(tool, request.caller, fields, confirmations, ctx);
        return stop ?? toToolResult(await runTool(tool, request.caller, fields, runOnce));
      };
      server.registerTool(
        name,
        { title, description, inputSchema, outputSchema, annotations },
        (input, ctx) =>
          call(input, ctx).catch((error) =>
            toErrorResult(error, request.requestId, () => request.report(error)),
          ),
      );
    }
    return server;
  };
}

/** Returns the question to the user or the result of a refusal; undefined if the tool may run. */
async function confirm(
  { name, confirmation, input: schema }: Tool,
  caller: AuthenticatedCaller,
  input: Record<string, unknown>,
  confirmations: Confirmations,
  ctx: ServerContext,
): Promise<InputRequiredResult | CallToolResult | undefined> {
  if (!confirmation || !canAsk(ctx)) return undefined;
  const question = await confirmation.question(caller, validate(schema, input));
  const answer = await confirmations.answerTo(question, { tool: name, input }, ctx);
  if (typeof answer === "object") return answer.ask;
  if (answer === "accepted") return undefined;
  const reason = `The user ${answer}. Nothing was deleted.`;
  return toToolResult({ body: confirmation.refused(input, reason) });
}

function toToolResult({ body, isReplayed }: Awaited<ReturnType<typeof runTool>>): CallToolResult {
  return {
    content: [{ type: "text", text: JSON.stringify(body) }],
    structuredContent: body,
    ...(isReplayed && { _meta: { idempotency_replayed: true } }),
  };
}

/** Returns the schemas shown to agents. The tool itself validates its input, so its errors are those of REST. */
function schemasOf(tool: Tool) {
  const dropped = tool.fieldsAsIn ? KNOWN_ARGUMENTS : ARGUMENTS;
  const input = compactSchema(toJsonSchema(inputSchemaOf(tool), "input"), dropped);
  const output = compactSchema(toJsonSchema(tool.output, "output"), RESULTS);
  return {
    inputSchema: fromJsonSchema(asJsonSchemaType(input), acceptAll),
    outputSchema: fromJsonSchema(asJsonSchemaType(output), compileOnFirstUse),
  };
}

/** Passes a schema to the SDK: Zod and the SDK declare the same JSON Schema with types that don't match. */
function asJsonSchemaType(schema: object): JsonSchemaType {
  return schema as JsonSchemaType;
}

const acceptAll: jsonSchemaValidator = {
  getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
};

const ajv = new AjvJsonSchemaValidator();

/** Compiles each schema on its first use. Compiling all of them would take most of the startup time. */
const compileOnFirstUse: jsonSchemaValidator = {
  getValidator<T>(schema: JsonSchemaType) {
    let validator: ReturnType<typeof ajv.getValidator<T>> | undefined;
    return (data: unknown) => {
      validator ??= ajv.getValidator<T>(schema);
      return validator(data);
    };
  },
};
