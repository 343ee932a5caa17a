import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { startApp } from "./app-server.ts";

type Seen = { method: string; path: string; headers: IncomingHttpHeaders; status?: number };
/** Responds in place of the server. `forward` sends the request to it, and resolves to its response. */
type Handler = (response: ServerResponse, forward: () => Promise<Response>) => unknown;

/** Starts a proxy in front of a service, which a test can make lose or replace responses. */
export async function startHttpProxy(target: string) {
  const requests: Seen[] = [];
  const handlers = new Map<string, Handler[]>();
  const app = await startApp(async (request, response) => {
    const { method = "", url = "", headers } = request;
    const seen: Seen = { method, path: url, headers };
    requests.push(seen);
    response.once("finish", () => (seen.status = response.statusCode));
    const body = Buffer.concat(await request.toArray());
    const forward = () => {
      const { host, connection, "content-length": length, ...own } = headers;
      return fetch(target + url, {
        method,
        // A compressed body could not be passed on: `fetch` decompresses it.
        headers: { ...(own as Record<string, string>), "accept-encoding": "identity" },
        body: body.length > 0 ? body : null,
        redirect: "manual",
      });
    };
    const handle = handlers.get(url)?.shift() ?? passOn;
    await handle(response, forward);
  });
  return {
    url: app.url,
    requests,
    /** Handles the next request to a path that no earlier handler takes. */
    once: (path: string, handler: Handler) =>
      void handlers.set(path, [...(handlers.get(path) ?? []), handler]),
  };
}

export const passOn: Handler = async (response, forward) => {
  const answer = await forward();
  response
    .setHeaders(answer.headers)
    .writeHead(answer.status)
    .end(await answer.bytes());
};

/** Lets the server do what it was asked to, and closes the connection without a response. */
export const loseResponse: Handler = async (response, forward) => {
  await (await forward()).arrayBuffer();
  response.destroy();
};

/** Lets the server do what it was asked to, and closes the connection within the response. */
export const cutResponse: Handler = async (response, forward) => {
  const answer = await forward();
  const body = await answer.bytes();
  response.writeHead(answer.status, { "content-type": "application/json", "content-length": body.length });
  response.write(body.subarray(0, body.length / 2), () => response.destroy());
};

/** Responds with an error, as the service or a proxy would. */
export function respondWith(status: number, headers: Record<string, string> = {}, problem?: object): Handler {
  return (response) =>
    response.writeHead(status, headers).end(problem ? JSON.stringify(problem) : "<h1>An error</h1>");
}
