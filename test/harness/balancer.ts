import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";

/** The ports behind one URL, by kind. Requests go to the ports of a kind in turn. */
export type Backends = { authorization: number[]; resources: number[] };

/** A reverse proxy in front of several processes, which clients reach under one URL. */
export type Balancer = {
  url: string;
  /** Returns another URL of the proxy that sends every request to one backend, with the shared Host header. */
  pin(port: number): Promise<string>;
  close(): Promise<void>;
};

// Longer than clients keep idle connections. If the proxy closes one first, it resets the request that was just sent.
const KEEP_ALIVE = { keepAliveTimeout: 75_000 };
const OWN_WORDS = /^\/(oauth|auth|dashboard|docs|healthz|readyz|metrics|reset|interaction|assets)(\/|$)/;

/** Starts a proxy on a free port. It reads `backends` at each request, so they may be filled in later. */
export async function startBalancer(backends: Backends): Promise<Balancer> {
  const servers: Server[] = [];
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
    const server = createServer(KEEP_ALIVE, (req, res) => forward(req, res, choosePort(req), { host }));
    server.listen(0, "127.0.0.1");
    servers.push(server);
    await once(server, "listening");
    return `http://localhost:${(server.address() as AddressInfo).port}`;
  }

  let host = "";
  const url = await listen(choose);
  host = new URL(url).host;
  return {
    url,
    pin: (port) => listen(() => port),
    async close() {
      for (const server of servers) server.closeAllConnections();
      await Promise.all(servers.map((server) => once(server.close(), "close")));
    },
  };
}

/** Sends a request to a port with other headers, and its response back. */
export function forward(
  req: IncomingMessage,
  res: ServerResponse,
  port: number,
  changed: OutgoingHttpHeaders,
): void {
  const { method, url: path, headers } = req;
  const passed = request({
    port,
    host: "127.0.0.1",
    method,
    path,
    headers: { ...headers, ...changed },
    agent: false,
  });
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
