import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

// A user signs in and allows access at the first request. Later ones end by themselves.
const FIRST_TIMEOUT_MS = 5 * 60_000;
const TIMEOUT_MS = 20_000;

/** The user's browser, which opens one authorization request after the other. */
export type Browser = {
  /** The address that the user opens. */
  address: string;
  redirectUri: string;
  /** Resolves to the parameters of the redirect; undefined if there is none in time. */
  open(url: string): Promise<URLSearchParams | undefined>;
  close(): void;
};

const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Conformance checks</title>
<body><h1>Conformance checks</h1><p>The checks open authorization requests in a window. Sign in and allow access there.</p>
<button id="start">Start</button> <button id="none" disabled>The window shows an error</button>
<p id="status" role="status"></p><script type="module">
const status = document.getElementById("status");
document.getElementById("start").onclick = async ({ target }) => {
  target.disabled = true;
  status.textContent = "Running";
  const none = document.getElementById("none");
  none.disabled = false;
  none.onclick = () => fetch("/none");
  const view = window.open("about:blank", "conformance", "popup,width=600,height=800");
  for (;;) {
    const response = await fetch("/next").catch(() => undefined);
    if (response?.status !== 200) break;
    view.location = (await response.json()).url;
  }
  view.close();
  status.textContent = "Done. The results are in the terminal.";
};
</script></body></html>`;

/** Listens on the loopback interface for the redirects of a registered redirect URI, at its port if it has one. */
export async function startBrowser(registered: string): Promise<Browser> {
  const { hostname, port, pathname } = new URL(registered);
  let pending:
    | { url: string; isSent: boolean; resolve(callback: URLSearchParams | undefined): void }
    | undefined;
  let waiting: ServerResponse | undefined;
  let isFirst = true;
  let isClosed = false;

  function offer(): void {
    if (!waiting) return;
    if (isClosed) waiting.writeHead(204).end();
    else if (pending && !pending.isSent) {
      pending.isSent = true;
      waiting
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ url: pending.url }));
    } else return;
    waiting = undefined;
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname === "/next") {
      waiting = response;
      return offer();
    }
    if (url.pathname === "/none") {
      pending?.resolve(undefined);
      return response.writeHead(204).end();
    }
    const isCallback = url.pathname === pathname;
    if (isCallback) pending?.resolve(url.searchParams);
    const type = isCallback ? "text/plain" : "text/html";
    response.writeHead(200, { "content-type": `${type}; charset=utf-8` });
    response.end(isCallback ? "The checks continue." : PAGE);
  });
  server.listen(Number(port) || 0, hostname.replace(/^\[|\]$/g, ""));
  await once(server, "listening");
  const { port: actual } = server.address() as AddressInfo;
  const origin = `http://${hostname}:${actual}`;

  return {
    address: `${origin}${pathname === "/" ? "/start" : "/"}`,
    redirectUri: origin + pathname,
    async open(url) {
      const { promise, resolve } = Promise.withResolvers<URLSearchParams | undefined>();
      pending = { url, isSent: false, resolve };
      const timer = setTimeout(() => resolve(undefined), isFirst ? FIRST_TIMEOUT_MS : TIMEOUT_MS);
      isFirst = false;
      offer();
      const callback = await promise;
      clearTimeout(timer);
      pending = undefined;
      return callback;
    },
    close() {
      isClosed = true;
      offer();
      server.close();
      server.closeIdleConnections();
    },
  };
}
