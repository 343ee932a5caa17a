import { once } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, LookupFunction } from "node:net";
import { generate } from "selfsigned";
import type { ConnectionDefaults } from "../../resources/outbound/connections.ts";
import { closeAfterTests } from "./closing.ts";

/** What is served at a URL. */
export type Publication = { body: unknown; status?: number; headers?: Record<string, string> };

export function selfSigned(...hosts: string[]) {
  return generate([{ name: "commonName", value: hosts[0] as string }], {
    keyType: "ec",
    extensions: [
      { name: "basicConstraints", cA: true },
      { name: "subjectAltName", altNames: hosts.map((value) => ({ type: 2 as const, value })) },
    ],
  });
}

/**
 * Starts an https server that stands for hosts on the internet: their names resolve to it, and it has a certificate for
 * them.
 */
export async function startPublisher(hosts: string[]) {
  const { private: key, cert } = await selfSigned(...hosts);
  const published = new Map<string, Publication>();
  /** The URLs that were requested, in order, and the headers of these requests. */
  const requests: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer({ key, cert }, (req, res) => {
    const url = `https://${String(req.headers.host).replace(/:\d+$/, "")}${req.url}`;
    requests.push(url);
    headers.push(req.headers);
    const publication: Publication = published.get(url) ?? { body: {}, status: 404 };
    const { body, status = 200, headers: own } = publication;
    res.writeHead(status, { "content-type": "application/json", ...own });
    res.end(typeof body === "string" ? body : JSON.stringify(body));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = [{ address: "127.0.0.1", family: 4 }];
  const allowedLookup: LookupFunction = (_host, _options, done) => done(null, address);
  const connections: ConnectionDefaults = {
    allowedLookup,
    allowedPort: (server.address() as AddressInfo).port,
    ca: cert,
  };
  return {
    /** The settings and connections of a service that can reach these hosts. */
    settings: { WEBHOOK_ALLOW_HOSTS: hosts.join(",") },
    connections,
    requests,
    headers,
    /** Serves an object as JSON, unless other headers are given. */
    publish: (url: string, publication: Publication) => void published.set(url, publication),
    close: closeAfterTests(() => {
      server.close();
      server.closeAllConnections();
    }),
  };
}
