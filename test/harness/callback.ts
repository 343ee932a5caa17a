import { startApp } from "./clients/app-server.ts";

/** A native app with a loopback redirect URI, `url`. */
export type CallbackServer = Awaited<ReturnType<typeof startCallbackServer>>;

// In a popup, it notifies the page that opened it.
const PAGE = `<!doctype html><link rel="icon" href="data:,"><h1>Back in the app</h1>
<script>window.opener?.postMessage(location.href, "*")</script>`;

/** Starts an app whose callback redirects to `onwards`, if given. */
export async function startCallbackServer(onwards?: string) {
  const arrived: string[] = [];
  const { url } = await startApp((request, answer) => {
    if (request.url?.startsWith("/callback")) arrived.push(request.url);
    if (onwards) return void answer.writeHead(303, { location: onwards }).end();
    answer.setHeader("content-type", "text/html");
    answer.end(PAGE);
  });
  return { url: `${url}/callback`, arrived };
}
