import { createServer } from "node:http";
import { type AddressInfo, isIPv4 } from "node:net";

// A receiver of webhooks on several loopback addresses. It accepts every delivery, but with FAIL_EVERY=n answers the first
// attempt of every n-th with 503. It answers GET with what it received: the number of requests and of different events.
const failEvery = Number(process.env.FAIL_EVERY);
const hosts = (process.env.HOSTS ?? "").split(",").filter(isIPv4);
const ids = new Set<string>();
let requests = 0;
let port = 0;
for (const host of hosts) {
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      response.end(JSON.stringify({ requests, events: ids.size }));
      return;
    }
    requests++;
    const id = `${request.url} ${request.headers["webhook-id"]}`;
    const isFirst = !ids.has(id);
    ids.add(id);
    const fails = isFirst && failEvery > 0 && ids.size % failEvery === 0;
    request.resume().on("end", () => response.writeHead(fails ? 503 : 204).end());
  });
  // An idle connection isn't closed while the service reuses it.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  port = (server.address() as AddressInfo).port;
}
console.log(`listening on ${port}`);
process.on("SIGTERM", () => process.exit(0));
