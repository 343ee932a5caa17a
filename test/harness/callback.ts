import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A native app with a loopback redirect URI, `url`. */
export type CallbackServer = {
  url: string;
  /** The callback URLs that browsers requested. */
  arrived: string[];
  close(): void;
};

// In a popup, it notifies the page that opened it.
const PAGE = `<!doctype html><link rel="icon" href="data:,"><h1>Back in the app</h1>
<script>window.opener?.postMessage(location.href, "*")</script>`;

/** Starts an app whose callback redirects to `onwards`, if given. The caller closes it. */
export async function startCallbackServer(onwards?: string): Promise<CallbackServer> {
  const arrived: string[] = [];
  const server = createServer((request, answer) => {
    if (request.url?.startsWith("/callback")) arrived.push(request.url);
    if (onwards) return void answer.writeHead(303, { location: onwards }).end();
    answer.setHeader("content-type", "text/html");
    answer.end(PAGE);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`,
    arrived,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
