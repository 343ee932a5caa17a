import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  type AuthInfo,
  createMcpHandler,
  fromJsonSchema,
  type JsonSchemaType,
  type jsonSchemaValidator,
  McpServer,
} from "@modelcontextprotocol/server";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import type { Context, Middleware } from "koa";
import bodyParser from "koa-bodyparser";
import type { Caller, Gate } from "../bearer.ts";
import type { Once } from "../idempotency.ts";
import { toJsonSchema } from "../openapi/json-schema.ts";
import { asProblem, Problem } from "../problem.ts";
import { nextStepOf } from "../problems.ts";
import { BASIC_SCOPES, covers } from "../scopes.ts";
import { inputOf, runTool, type Tool } from "./tool.ts";

type EndpointOptions = {
  gate: Gate;
  tools: Tool[];
  once: Once;
  /** The address of the endpoint. */
  mcpUrl: string;
  /** Browser origins that may call; requests without an Origin come from no browser. */
  origins: ReadonlySet<string>;
  version: string;
  onError(error: unknown, ctx?: Context): void;
};

const readBody = bodyParser({
  enableTypes: ["json"],
  jsonLimit: "1mb",
  onerror(error) {
    if ((error as { status?: number }).status === 413) {
      throw new Problem(413, "body_too_large", "The body may have at most 1mb.");
    }
    // What is not JSON is left to the handler, which answers in JSON-RPC.
  },
});

/** The MCP endpoint: Streamable HTTP without sessions, revision 2026-07-28 and the 2025 ones from one address. */
export function mcpEndpoint({
  gate,
  tools,
  once,
  mcpUrl,
  origins,
  version,
  onError,
}: EndpointOptions): Middleware {
  const { host, pathname } = new URL(mcpUrl);
  const offers = tools.map((tool) => ({ ...tool, ...schemasOf(tool) }));
  const handle = toNodeHandler(
    createMcpHandler(({ authInfo }) => createServer(offers, authInfo?.extra?.call as Call, once, version), {
      onerror: (error) => void (isRefusal(error) || onError(error)),
    }),
  );

  return async function serveMcp(ctx, next) {
    if (ctx.path !== pathname || ctx.host.toLowerCase() !== host) return next();
    checkOrigin(ctx, origins);
    const caller = await gate.authenticate(ctx, BASIC_SCOPES);
    if (ctx.method !== "POST") {
      throw new Problem(405, "method_not_allowed", "Use POST.", { headers: { Allow: "POST" } });
    }
    await readBody(ctx, async () => {});
    const messages = messagesOf(ctx.request.body);
    if (messages.length > 1) await gate.countFurther(ctx, caller, messages.length - 1);
    checkScopes(messages, tools, caller, gate);
    await pass(
      ctx,
      { caller, requestId: ctx.state.requestId, report: (error) => onError(error, ctx) },
      handle,
    );
  };
}

// How the library begins what it says of a request that it answers with 4xx, beside what is no fault of the caller.
const REFUSALS =
  /^(Rejected inbound request|Unsupported Media Type|Not Acceptable|Bad Request|Invalid Request|Parse error)/;

/** Whether an error is a mistake of the caller, which is answered and is no news to whoever runs the service. */
function isRefusal({ message }: Error): boolean {
  return REFUSALS.test(message);
}

/** MCP, Streamable HTTP, "Security": a foreign Origin is refused, against DNS rebinding. */
function checkOrigin(ctx: Context, origins: ReadonlySet<string>): void {
  const origin = ctx.get("origin");
  if (origin && !origins.has(origin))
    throw new Problem(403, "origin_not_allowed", "This origin may not call here.");
}

type Message = { method?: unknown; params?: { name?: unknown } } | null | undefined;

/** The messages of a body: those of the revision 2025-03-26 may be many. */
function messagesOf(body: unknown): Message[] {
  return Array.isArray(body) ? body : [body as Message];
}

/** MCP, "Runtime Insufficient Scope Errors": a call that the token does not cover is a 403 step-up challenge. */
function checkScopes(messages: Message[], tools: Tool[], caller: Caller, gate: Gate): void {
  for (const message of messages) {
    if (message?.method !== "tools/call") continue;
    const tool = tools.find(({ name }) => name === message.params?.name);
    if (tool && !covers(caller.scopes, tool.scopes)) throw gate.insufficientScope(tool.scopes);
  }
}

/** One request, as the tools see it. */
type Call = { caller: Caller; requestId: string; report(error: unknown): void };

async function pass(ctx: Context, call: Call, handle: ReturnType<typeof toNodeHandler>): Promise<void> {
  const { caller } = call;
  const auth: AuthInfo = {
    token: "", // never handed on: the tools have no use for it
    clientId: caller.clientId,
    scopes: [...caller.scopes],
    expiresAt: caller.expiresAt,
    extra: { call },
  };
  ctx.respond = false;
  const hasBody = ctx.request.rawBody !== undefined;
  await handle(Object.assign(ctx.req, { auth }), ctx.res, hasBody ? ctx.request.body : undefined);
}

function createServer(offers: Offer[], call: Call, once: Once, version: string): McpServer {
  const server = new McpServer(
    { name: "linkgate", title: "linkgate", version },
    { instructions: "Manages the short links of one organization. Call whoami first to see which one." },
  );
  for (const tool of offers.filter(({ scopes }) => covers(call.caller.scopes, scopes))) {
    server.registerTool(
      tool.name,
      {
        title: tool.title,
        description: tool.description,
        inputSchema: tool.inputSchema,
        outputSchema: tool.outputSchema,
        annotations: tool.annotations,
      },
      async (input) => run(tool, call, input as object, once),
    );
  }
  return server;
}

type Offer = Tool & ReturnType<typeof schemasOf>;

/** What agents see of a tool. Its input is checked when the tool runs, so that its refusals are those of REST. */
function schemasOf(tool: Tool) {
  return {
    inputSchema: fromJsonSchema(toJsonSchema(inputOf(tool), "input") as JsonSchemaType, anything),
    outputSchema: fromJsonSchema(toJsonSchema(tool.output, "output") as JsonSchemaType, whenUsed),
  };
}

const anything: jsonSchemaValidator = {
  getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
};

const ajv = new AjvJsonSchemaValidator();

/** Compiles a schema for the first result that is held against it: all of them at once would be most of a start. */
const whenUsed: jsonSchemaValidator = {
  getValidator<T>(schema: JsonSchemaType) {
    let check: ReturnType<typeof ajv.getValidator<T>> | undefined;
    return (data: unknown) => {
      check ??= ajv.getValidator<T>(schema);
      return check(data);
    };
  },
};

/**
 * A refusal is a result that the agent can read and act on: a problem of REST, with what to do next. As text alone, for
 * clients of 2025 hold structured content against the output schema even where it is an error.
 */
async function run(tool: Tool, { caller, requestId, report }: Call, input: object | undefined, once: Once) {
  try {
    const { body, isReplayed } = await runTool(tool, caller, { ...input }, once);
    return {
      content: [{ type: "text" as const, text: JSON.stringify(body) }],
      structuredContent: body,
      ...(isReplayed && { _meta: { idempotency_replayed: true } }),
    };
  } catch (error) {
    const { status, code, message, errors, headers } = asProblem(error, () => report(error));
    const refusal = {
      status,
      code,
      detail: message,
      next: nextStepOf(code, headers),
      request_id: requestId,
      ...(errors && { errors }),
    };
    const text = JSON.stringify(refusal);
    return { isError: true, content: [{ type: "text" as const, text }] };
  }
}
