import { pipeline } from "node:stream/promises";
import type { Context, Middleware } from "koa";
import type { BearerCheck } from "../access/bearer.ts";
import { covers } from "../access/scopes.ts";
import { BODY_MAX, parseJson, readBody } from "../http/json-body.ts";
import { Problem } from "../http/problem.ts";
import { isAt } from "../http/routing.ts";
import { lazy } from "../lazy.ts";
import { type Message, requiredScopes } from "./offer.ts";
import type { McpOptions } from "./server.ts";

// A hundred lists of links in one batch took 3 s of processor time. Later revisions have no batches.
const MESSAGES_MAX = 10;

const JSON_TYPE = "application/json";
const STREAM_TYPE = "text/event-stream";
// The SDK looks for these names.
const RESPONSE_TYPES = [JSON_TYPE, STREAM_TYPE];

const REVISION = "io.modelcontextprotocol/protocolVersion";

type EndpointOptions = McpOptions & {
  bearerCheck: BearerCheck;
  /** The browser origins that may call. Requests without an Origin don't come from a browser. */
  origins: ReadonlySet<string>;
};

/** Creates the MCP endpoint: stateless Streamable HTTP, for revision 2026-07-28 and the 2025 revisions. */
export function createMcpEndpoint(options: EndpointOptions): Middleware {
  const { bearerCheck, scopes, mcpUrl, origins, onError } = options;
  const isEndpoint = isAt(mcpUrl);
  // Loaded by the first request: the SDK would add a seventh to the time that a start takes.
  const handler = lazy(async () => {
    const { createHandler } = await import("./server.ts");
    return createHandler(options);
  });

  return async function serveMcp(ctx, next) {
    if (!isEndpoint(ctx)) return next();
    checkOrigin(ctx, origins);
    const caller = await bearerCheck.authenticate(ctx, scopes);
    requirePost(ctx);
    const onlyType = acceptBoth(ctx);
    ctx.request.body = await readMessages(ctx);
    // Revision 2025-03-26 allows batches.
    const messages = [ctx.request.body].flat() as Message[];
    if (messages.length > MESSAGES_MAX)
      throw new Problem(400, "invalid_request", `A batch may have at most ${MESSAGES_MAX} messages.`);
    for (const message of messages) tolerate(ctx, message);
    if (messages.length > 1) await caller.countFurther(messages.length - 1);
    for (const message of messages) {
      const required = requiredScopes(message, options);
      // MCP, "Runtime Insufficient Scope Errors"
      if (!covers(caller.scopes, required)) throw bearerCheck.insufficientScope(caller, required);
    }
    if (refuseSubscription(ctx)) return;
    const { requestId } = ctx.state;
    const answer = await handler();
    const response = await answer(ctx, { caller, requestId, report: (error) => onError(error, ctx) });
    const isBatch = Array.isArray(ctx.request.body);
    await send(ctx, onlyType ? await convertTo(onlyType, isBatch, response) : response);
  };
}

/** MCP, Streamable HTTP, "Security Warning": a foreign Origin is rejected, against DNS rebinding. */
function checkOrigin(ctx: Context, origins: ReadonlySet<string>): void {
  const origin = ctx.get("origin");
  if (origin && !origins.has(origin))
    throw new Problem(403, "origin_not_allowed", "This origin is not allowed to call the MCP endpoint.");
}

function requirePost(ctx: Context): void {
  if (ctx.method === "POST") return;
  throw new Problem(405, "method_not_allowed", "Allowed methods: POST.", { headers: { Allow: "POST" } });
}

/**
 * Names both types, which the SDK looks for, if the client accepts one of them: a wildcard, or no Accept header, includes
 * both (RFC 9110 §12.5.1). Returns the type if the client accepts only one.
 */
function acceptBoth(ctx: Context): string | undefined {
  const [type, ...others] = RESPONSE_TYPES.filter((each) => ctx.accepts(each));
  if (type) ctx.req.headers.accept = RESPONSE_TYPES.join(", ");
  return others.length === 0 ? type : undefined;
}

/** Accepts what hosts send although the specification doesn't provide for it. */
function tolerate(ctx: Context, message: Message): void {
  type Params = { arguments?: unknown; _meta?: Record<string, unknown> | null };
  const { method, params } = (message ?? {}) as { method?: unknown; params?: Params | null };
  // The revision is negotiated by the message. The SDK refuses the request if the header has another one. A message that
  // states its revision negotiates none: revision 2026-07-28 has no `initialize`.
  if (method === "initialize" && !params?._meta?.[REVISION]) delete ctx.req.headers["mcp-protocol-version"];
  // The `next_cursor` of the last page.
  for (const fields of [params, params?.arguments] as ({ cursor?: unknown } | undefined | null)[])
    if (fields?.cursor === null) delete fields.cursor;
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

/**
 * Converts a successful response to the only type that a client accepts. The specification asks clients to accept both,
 * but some hosts send one. Without a session, a stream has nothing but the responses to its request.
 */
async function convertTo(type: string, isBatch: boolean, response: Response): Promise<Response> {
  const actual = response.headers.get("content-type") ?? "";
  if (!response.ok || !response.body || actual.startsWith(type)) return response;
  const headers = new Headers(response.headers);
  headers.delete("content-length");
  headers.set("content-type", type);
  const text = await response.text();
  return new Response(type === JSON_TYPE ? toJson(text, isBatch) : toStream(text), { status: 200, headers });
}

function toJson(stream: string, isBatch: boolean): string {
  const responses = stream
    .split("\n")
    .filter((line) => /^data: *\S/.test(line))
    .map((line) => line.slice("data:".length))
    .filter((line) => !("method" in JSON.parse(line)));
  return isBatch ? `[${responses.join(",")}]` : (responses[0] ?? "");
}

function toStream(json: string): string {
  return `event: message\ndata: ${json}\n\n`;
}

async function send(ctx: Context, { status, headers, body }: Response): Promise<void> {
  ctx.respond = false; // Koa would log each disconnection, and measure the time without the stream
  ctx.status = status;
  ctx.set(Object.fromEntries(headers));
  if (!body) return void ctx.res.end();
  await pipeline(body, ctx.res).catch((error) => {
    if (error.code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  });
}
