import { toNodeHandler } from "@modelcontextprotocol/node";
import { type AuthInfo, createMcpHandler } from "@modelcontextprotocol/server";
import type { Context } from "koa";
import type { RunOnce } from "../idempotency/run-once.ts";
import { createConfirmations } from "./confirmation.ts";
import { createServerFactory, type ToolRequest } from "./server.ts";
import type { Tool } from "./tool.ts";

type HandlerOptions = {
  tools: Tool[];
  runOnce: RunOnce;
  /** Signs the questions to users; shared by all processes. */
  signingSecret: string;
  extensions: readonly string[];
  version: string;
  onError: (error: unknown) => void;
};

/** Responds to an authenticated request whose body was read. */
export type McpHandler = (ctx: Context, request: ToolRequest) => Promise<void>;

/** Creates the handler of the MCP endpoint, by the SDK. */
export function createHandler({ signingSecret, onError, ...options }: HandlerOptions): McpHandler {
  const confirmations = createConfirmations(signingSecret, (ctx) => requestOf(ctx.http?.authInfo).caller);
  const createServer = createServerFactory({ ...options, confirmations });
  const handle = toNodeHandler(
    createMcpHandler(({ authInfo }) => createServer(requestOf(authInfo)), {
      onerror: (error) => void (isClientError(error) || onError(error)),
    }),
  );

  return async function respond(ctx, request) {
    const { caller } = request;
    const auth: AuthInfo = {
      token: "", // never passed on: the tools don't need it
      clientId: caller.clientId,
      scopes: [...caller.scopes],
      expiresAt: caller.expiresAt,
      extra: { request },
    };
    ctx.respond = false; // the SDK writes the response itself
    const incoming = Object.assign(ctx.req, { auth, method: ctx.method, url: ctx.url });
    await handle(incoming, ctx.res, ctx.request.body);
  };
}

function requestOf(authInfo: AuthInfo | undefined): ToolRequest {
  return authInfo?.extra?.request as ToolRequest;
}

// How the library's messages begin for requests that it answers with a 4xx.
const CLIENT_ERRORS =
  /^(Rejected inbound request|Unsupported Media Type|Not Acceptable|Bad Request|Invalid Request|Parse error|Unsupported protocol version)/;

/** Returns whether an error is the client's, which has been answered and needs no log entry. */
function isClientError({ message }: Error): boolean {
  return CLIENT_ERRORS.test(message);
}
