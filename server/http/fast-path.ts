import type { IncomingMessage, RequestListener } from "node:http";
import type Koa from "koa";
import type { Context, Middleware } from "koa";
import compose from "koa-compose";
import type { FastPath } from "../../resources/http/api-context.ts";
import { isSentTwice } from "../../resources/http/headers.ts";

type FrontOptions = {
  /** At most one path has a pattern. */
  paths: FastPath[];
  steps: Middleware[];
};

// What `callback` calls: the types declare it private.
type Handling = { handleRequest(ctx: Context, steps: Middleware): Promise<void> };

/** Frequent requests pass only the steps that concern them, and the others all of the application's. */
export function createFront(app: Koa, { paths, steps }: FrontOptions): RequestListener {
  const application = app.callback();
  const handling = app as unknown as Handling;
  const rows = paths.map((each) => ({ ...each, run: compose([...steps, ...each.steps]) }));
  const pattern = rows.find(({ matches }) => matches);
  const exact = new Map(rows.filter(({ matches }) => !matches).map((row) => [row.path, row]));
  function find(request: IncomingMessage) {
    const url = request.url as string;
    const row = exact.get(url) ?? (pattern?.matches?.(url) ? pattern : undefined);
    return row && isSimple(request, row) ? row : undefined;
  }
  return function serve(request, response) {
    const row = find(request);
    if (!row) return void application(request, response);
    const ctx = app.createContext(request, response);
    ctx._matchedRoute = row.path;
    void handling.handleRequest(ctx, row.run as Middleware);
  };
}

/** Accepts a GET without a body, or a POST of known length that isn't from a browser; others need more steps. */
function isSimple(request: IncomingMessage, { method, host }: FastPath): boolean {
  const { headers } = request;
  if (request.method !== method || request.httpVersion !== "1.1") return false;
  if (headers.host !== host || isSentTwice(request, "host")) return false;
  const hasLength = headers["content-length"] !== undefined;
  return method === "GET"
    ? !hasLength && headers["transfer-encoding"] === undefined
    : hasLength && headers["content-encoding"] === undefined && headers.origin === undefined;
}
