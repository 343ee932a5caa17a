import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** An app on this computer: people come back to it at `url`. */
export type CallbackServer = {
  url: string;
  /** The addresses at which people arrived. */
  arrived: string[];
  close(): void;
};

/** Starts one; the caller closes it. */
export async function startCallbackServer(): Promise<CallbackServer> {
  const arrived: string[] = [];
  const server = createServer((request, answer) => {
    if (request.url?.startsWith("/callback")) arrived.push(request.url);
    answer.setHeader("content-type", "text/html");
    answer.end('<!doctype html><link rel="icon" href="data:,"><h1>Back in the app</h1>');
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
