import { EventEmitter, once } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, LookupFunction } from "node:net";
import { generate } from "selfsigned";
import type { ConnectionDefaults } from "../../resources/outbound/connections.ts";

/** What is served at a URL: nothing, as long as it `hangs`. */
export type Publication = {
  body: unknown;
  status?: number;
  headers?: Record<string, string>;
  hangs?: boolean;
};

/** An https server that stands for hosts on the internet: their names resolve to it, and it has a certificate for them. */
export type Publisher = {
  /** The settings and connections of a service that can reach these hosts. */
  settings: Record<string, string>;
  connections: ConnectionDefaults;
  /** The URLs that were requested, in order. */
  requests: string[];
  /** Resolves when this URL has been requested this often. */
  waitFor(url: string, times?: number): Promise<void>;
  /** The headers of these requests. */
  headers: IncomingHttpHeaders[];
  /** Serves an object as JSON, unless other headers are given. */
  publish(url: string, publication: Publication): void;
  close(): void;
};

/** Starts a publisher for these hosts. The caller closes it. */
export async function startPublisher(hosts: string[]): Promise<Publisher> {
  const { private: key, cert } = await generate([{ name: "commonName", value: "publisher" }], {
    keyType: "ec",
    extensions: [
      { name: "basicConstraints", cA: true },
      { name: "subjectAltName", altNames: hosts.map((value) => ({ type: 2 as const, value })) },
    ],
  });
  const published = new Map<string, Publication>();
  const requests: string[] = [];
  const received: IncomingHttpHeaders[] = [];
  const arrivals = new EventEmitter().setMaxListeners(0);
  const server = createServer({ key, cert }, (req, res) => {
    const url = `https://${String(req.headers.host).replace(/:\d+$/, "")}${req.url}`;
    requests.push(url);
    received.push(req.headers);
    arrivals.emit("request");
    const publication: Publication = published.get(url) ?? { body: {}, status: 404 };
    const { body, status = 200, headers } = publication;
    if (publication.hangs) return;
    res.writeHead(status, { "content-type": "application/json", ...headers });
    res.end(typeof body === "string" ? body : JSON.stringify(body));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = [{ address: "127.0.0.1", family: 4 }];
  const allowedLookup: LookupFunction = (_host, _options, done) => done(null, address);
  return {
    settings: { WEBHOOK_ALLOW_HOSTS: hosts.join(",") },
    connections: { allowedLookup, allowedPort: (server.address() as AddressInfo).port, ca: cert },
    requests,
    async waitFor(url, times = 1) {
      while (requests.filter((one) => one === url).length < times) await once(arrivals, "request");
    },
    headers: received,
    publish: (url, publication) => void published.set(url, publication),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
