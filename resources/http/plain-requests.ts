import type { IncomingMessage } from "node:http";
import compose from "koa-compose";
import type { ApiMiddleware } from "./api-context.ts";
import type { FindExactRoute } from "./exact-routes.ts";
import { PlainContext, type PlainResponse } from "./plain-context.ts";

/** What identifies a request: its ID in the log, and the IP address of the client. */
export type RequestOrigin = { requestId: string; ip: string };

/** An operation that serves requests without Koa. */
export type PlainOperation = {
  path: string;
  serve(request: IncomingMessage, origin: RequestOrigin): Promise<PlainResponse>;
};

/** Returns the operation of an ordinary request, or undefined for every other request, which Koa has to serve. */
export type FindPlainOperation = (request: IncomingMessage) => PlainOperation | undefined;

/**
 * Serves the ordinary requests of a resource without Koa, with the same steps: those of `middleware`, then the route's.
 * @param resource the URL of the resource
 */
export function servePlainRequests(
  resource: string,
  middleware: ApiMiddleware[],
  findRoute: FindExactRoute,
): FindPlainOperation {
  const { host } = new URL(resource);
  const operations = new Map<string, PlainOperation>();

  function operationAt(path: string): PlainOperation | undefined {
    const route = findRoute("POST", path);
    if (!route) return undefined;
    const run = compose([...middleware, route.run]);
    const operation: PlainOperation = {
      path,
      async serve(request, origin) {
        const context = new PlainContext(request, origin);
        await run(context);
        return context.toResponse();
      },
    };
    operations.set(path, operation);
    return operation;
  }

  return function findPlainOperation(request) {
    if (!isPlain(request, host)) return undefined;
    const path = request.url as string;
    return operations.get(path) ?? operationAt(path);
  };
}

/** Returns whether a request is a POST over HTTP/1.1 to this host, not from a browser, with a body of known length. */
function isPlain({ method, httpVersion, headers }: IncomingMessage, host: string): boolean {
  return (
    method === "POST" &&
    httpVersion === "1.1" &&
    headers.host === host &&
    headers.origin === undefined &&
    headers["content-length"] !== undefined &&
    headers["content-encoding"] === undefined
  );
}
