import {
  type CallToolResult,
  fromJsonSchema,
  type JsonSchemaType,
  type jsonSchemaValidator,
  McpServer,
} from "@modelcontextprotocol/server";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import { covers } from "../access/scopes.ts";
import type { RunOnce } from "../idempotency/run-once.ts";
import { lazy } from "../lazy.ts";
import { toJsonSchema } from "../openapi/json-schema.ts";
import { toErrorResult } from "./errors.ts";
import { inputSchemaOf, runTool, type Tool } from "./tool.ts";

/** The context of one HTTP request, as tools need it. */
export type ToolRequest = { caller: AuthenticatedCaller; requestId: string; report(error: unknown): void };

const INSTRUCTIONS =
  "Manages the short links and webhooks of one organization. Call whoami first to see which one. Times are in UTC. Clicks \
of known bots are reported separately.";

/** @returns a function that creates the server of one request, with the tools that its scopes allow */
export function createServerFactory(tools: Tool[], runOnce: RunOnce, version: string) {
  // Converting the schemas takes longer than most of the startup.
  const described = lazy(() => tools.map((tool) => ({ tool, ...schemasOf(tool) })));

  return function createServer(request: ToolRequest): McpServer {
    const server = new McpServer(
      { name: "linkgate", title: "linkgate", version },
      { instructions: INSTRUCTIONS },
    );
    for (const { tool, inputSchema, outputSchema } of described()) {
      if (!covers(request.caller.scopes, tool.scopes)) continue;
      const { name, title, description, annotations } = tool;
      server.registerTool(name, { title, description, inputSchema, outputSchema, annotations }, (input) =>
        callTool(tool, request, input as object, runOnce),
      );
    }
    return server;
  };
}

async function callTool(
  tool: Tool,
  { caller, requestId, report }: ToolRequest,
  input: object | undefined,
  runOnce: RunOnce,
): Promise<CallToolResult> {
  try {
    const { body, isReplayed } = await runTool(tool, caller, { ...input }, runOnce);
    return {
      content: [{ type: "text", text: JSON.stringify(body) }],
      structuredContent: body,
      ...(isReplayed && { _meta: { idempotency_replayed: true } }),
    };
  } catch (error) {
    return toErrorResult(error, requestId, () => report(error));
  }
}

/** Returns the schemas shown to agents. The tool itself validates its input, so its errors are those of REST. */
function schemasOf(tool: Tool) {
  return {
    inputSchema: fromJsonSchema(asJsonSchemaType(toJsonSchema(inputSchemaOf(tool), "input")), acceptAll),
    outputSchema: fromJsonSchema(asJsonSchemaType(toJsonSchema(tool.output, "output")), compileOnFirstUse),
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
