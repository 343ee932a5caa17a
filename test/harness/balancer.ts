import { type IncomingMessage, type OutgoingHttpHeaders, request, type ServerResponse } from "node:http";
import { startApp } from "./clients/app-server.ts";

/** The ports behind one URL, by kind. Requests go to the ports of a kind in turn. */
export type Backends = { authorization: number[]; resources: number[] };

// Longer than clients keep idle connections. If the proxy closes one first, it resets the request that was just sent.
const KEEP_ALIVE = { keepAliveTimeout: 75_000 };
const OWN_WORDS = /^\/(oauth|auth|dashboard|docs|healthz|readyz|metrics|reset|interaction|assets)(\/|$)/;

/**
 * Starts a reverse proxy in front of several processes, which clients reach under one URL. It reads `backends` at each
 * request, so they may be filled in later.
 */
export async function startBalancer(backends: Backends) {
  const turns = { authorization: 0, resources: 0 };

  function kindOf(path: string): keyof Backends {
    if (/^\/(v1|mcp)(\/|\?|$)/.test(path)) return "resources";
    const isShort = /^\/[A-Za-z0-9_-]+(\?|$)/.test(path) && !OWN_WORDS.test(path);
    return isShort ? "resources" : "authorization";
  }

  function choose({ url = "/", headers }: IncomingMessage): number {
    const kind = kindOf(url);
    const named = headers["x-backend"];
    const index = named === undefined ? turns[kind]++ : Number(named);
    return backends[kind][index % backends[kind].length] as number;
  }

  async function listen(choosePort: (req: IncomingMessage) => number): Promise<string> {
    const app = await startApp((req, res) => forward(req, res, choosePort(req), { host }), KEEP_ALIVE);
    return `http://localhost:${app.port}`;
  }

  let host = "";
  const url = await listen(choose);
  host = new URL(url).host;
  return {
    url,
    /** Returns another URL of the proxy that sends every request to one backend, with the shared Host header. */
    pin: (port: number) => listen(() => port),
  };
}

export function forward(
  req: IncomingMessage,
  res: ServerResponse,
  port: number,
  changed: OutgoingHttpHeaders,
): void {
  const { method, url: path, headers } = req;
  const sent = { method, path, headers: { ...headers, ...changed } };
  const passed = request({ ...sent, port, host: "127.0.0.1", agent: false });
  passed.once("response", (answer) => {
    res.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    answer.pipe(res);
  });
  passed.once("error", () => {
    if (res.headersSent) res.destroy();
    else res.writeHead(502).end();
  });
  req.pipe(passed);
}
