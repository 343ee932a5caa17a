import type { Context, Middleware } from "koa";
import type { AuthenticatedCaller, BearerCheck } from "../access/bearer.ts";
import { BASIC_SCOPES } from "../access/scopes.ts";
import { BODY_MAX, parseJson, readBody } from "../http/json-body.ts";
import { Problem } from "../http/problem.ts";
import { isAt } from "../http/routing.ts";
import { lazy } from "../lazy.ts";
import { type Message, missingScopes } from "./required-scopes.ts";
import type { McpOptions } from "./server.ts";
import type { Tool } from "./tool.ts";

// Far more than any request needs. Code that walks a value recursively would overflow the stack at several thousand.
const DEPTH_MAX = 64;

const TYPES = ["application/json", "text/event-stream"];

// A hundred lists of links in one batch took 3 s of processor time. Later revisions have no batches.
const MESSAGES_MAX = 10;

type EndpointOptions = McpOptions & {
  bearerCheck: BearerCheck;
  /** The browser origins that may call. Requests without an Origin don't come from a browser. */
  origins: ReadonlySet<string>;
};

/** Creates the MCP endpoint: stateless Streamable HTTP, for revision 2026-07-28 and the 2025 revisions. */
export function createMcpEndpoint(options: EndpointOptions): Middleware {
  const { bearerCheck, tools, mcpUrl, origins, onError } = options;
  const isEndpoint = isAt(mcpUrl);
  // Loaded by the first request: the SDK would add a seventh to the time that a start takes.
  const handler = lazy(async () => {
    const { createHandler } = await import("./server.ts");
    return createHandler(options);
  });

  return async function serveMcp(ctx, next) {
    if (!isEndpoint(ctx)) return next();
    checkOrigin(ctx, origins);
    const caller = await bearerCheck.authenticate(ctx, BASIC_SCOPES);
    requirePost(ctx);
    acceptWildcards(ctx);
    ctx.request.body = await readMessages(ctx);
    if (isDeeperThan(DEPTH_MAX, ctx.request.body)) {
      throw new Problem(400, "invalid_json", `The JSON must be at most ${DEPTH_MAX} levels deep.`);
    }
    // Revision 2025-03-26 allows batches.
    const messages = [ctx.request.body].flat() as Message[];
    if (messages.length > MESSAGES_MAX) {
      throw new Problem(400, "invalid_request", `A batch may have at most ${MESSAGES_MAX} messages.`);
    }
    if (messages.length > 1) await caller.countFurther(messages.length - 1);
    checkScopes(messages, tools, caller, bearerCheck);
    if (refuseSubscription(ctx)) return;
    const { requestId } = ctx.state;
    const respond = await handler();
    await respond(ctx, { caller, requestId, report: (error) => onError(error, ctx) });
  };
}

/** MCP, Streamable HTTP, "Security Warning": a foreign Origin is rejected, against DNS rebinding. */
function checkOrigin(ctx: Context, origins: ReadonlySet<string>): void {
  const origin = ctx.get("origin");
  if (origin && !origins.has(origin)) {
    throw new Problem(403, "origin_not_allowed", "This origin is not allowed to call the MCP endpoint.");
  }
}

function requirePost(ctx: Context): void {
  if (ctx.method === "POST") return;
  throw new Problem(405, "method_not_allowed", "Allowed methods: POST.", { headers: { Allow: "POST" } });
}

/** RFC 9110 §12.5.1: a wildcard, or no Accept header, includes both types, but the SDK looks for their names. */
function acceptWildcards(ctx: Context): void {
  if (TYPES.every((type) => ctx.accepts(type))) ctx.req.headers.accept = TYPES.join(", ");
}

/** Parses a JSON body. Invalid JSON and other types are left to the SDK, which answers in JSON-RPC. */
async function readMessages(ctx: Context): Promise<unknown> {
  if (!ctx.is("json")) return undefined;
  const bytes = await readBody(ctx.req, BODY_MAX);
  try {
    return parseJson(bytes);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** MCP 2026-07-28, "Streamable HTTP", without an SDK option. Nothing changes; a stream would outlive its token. */
function refuseSubscription(ctx: Context): boolean {
  const { method, id = null } = (ctx.request.body ?? {}) as { method?: unknown; id?: unknown };
  if (method !== "subscriptions/listen") return false;
  ctx.status = 404;
  ctx.body = { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } };
  return true;
}

/** MCP, "Runtime Insufficient Scope Errors": missing scopes get a 403 step-up challenge. */
function checkScopes(
  messages: Message[],
  tools: Tool[],
  caller: AuthenticatedCaller,
  bearerCheck: BearerCheck,
): void {
  for (const message of messages) {
    const missing = missingScopes(message, tools, caller.scopes);
    if (missing) throw bearerCheck.insufficientScope(caller, missing);
  }
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((child) => isDeeperThan(levels - 1, child));
}
