import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

// The user signs in at the first request. Later ones end by themselves, or by pressing a button.
const FIRST_TIMEOUT_MS = 10 * 60_000;
const TIMEOUT_MS = 60_000;

/** The user's browser, which opens one authorization request after the other. */
export type Browser = {
  /** The address that the user opens. */
  address: string;
  redirectUri: string;
  /** Resolves to the parameters of the redirect; undefined if there is none in time. */
  open(url: string): Promise<URLSearchParams | undefined>;
  close(): void;
};

const page = (content: string) =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Conformance checks</title><style>body{font:1rem/1.5 system-ui;max-width:36rem;margin:3rem auto;padding:0 1rem}</style>
<h1>Conformance checks</h1>${content}</html>`;

const START =
  page(`<p>The checks open authorization requests in a new tab, one after the other. Sign in and allow access there.</p>
<p><a href="/next" target="_blank" rel="noopener">Start</a></p>
<p>If the tab shows an error instead of the next request, close it and <a href="/none" target="_blank" rel="noopener">continue without a redirect</a>.</p>`);
const DONE = page("<p>All requests are done. The results are in the terminal.</p>");

type Pending = { url: string; isSent: boolean; resolve(callback: URLSearchParams | undefined): void };

/** Listens on the loopback interface for the redirects of a registered redirect URI, at its port if it has one. */
export async function startBrowser(registered: string): Promise<Browser> {
  const { hostname, port, pathname } = new URL(registered);
  let pending: Pending | undefined;
  // The tab waits for its next request.
  let tab: ServerResponse | undefined;
  let isFirst = true;
  let isClosed = false;

  function sendNext(): void {
    if (isClosed) tab?.writeHead(200, { "content-type": "text/html" }).end(DONE);
    else if (tab && pending && !pending.isSent) {
      pending.isSent = true;
      tab.writeHead(303, { location: pending.url }).end();
    } else return;
    tab = undefined;
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const isCallback = url.pathname === pathname;
    if (isCallback || url.pathname === "/none") {
      pending?.resolve(isCallback ? url.searchParams : undefined);
      response.writeHead(303, { location: "/next" }).end();
    } else if (url.pathname === "/next") {
      tab?.writeHead(204).end();
      tab = response;
      sendNext();
    } else response.writeHead(200, { "content-type": "text/html" }).end(START);
  });
  server.listen(Number(port) || 0, hostname.replace(/^\[|\]$/g, ""));
  await once(server, "listening");
  const origin = `http://${hostname}:${(server.address() as AddressInfo).port}`;

  return {
    address: `${origin}${pathname === "/" ? "/start" : "/"}`,
    redirectUri: origin + pathname,
    async open(url) {
      const { promise, resolve } = Promise.withResolvers<URLSearchParams | undefined>();
      pending = { url, isSent: false, resolve };
      const timer = setTimeout(() => resolve(undefined), isFirst ? FIRST_TIMEOUT_MS : TIMEOUT_MS);
      isFirst = false;
      sendNext();
      const callback = await promise;
      clearTimeout(timer);
      pending = undefined;
      return callback;
    },
    close() {
      isClosed = true;
      sendNext();
      server.close();
      server.closeIdleConnections();
    },
  };
}
