import { once } from "node:events";
import { type Agent, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

type RawOptions = {
  method?: string;
  /** Names and values in turn, which allows repeated headers. The Host header is added. */
  headers?: string[];
  body?: string | Buffer | undefined;
  /** By default, each request has a connection of its own. */
  agent?: Agent | false | undefined;
  localAddress?: string;
  /** The certificate to trust, in PEM, and the host that it has to name. */
  ca?: string | undefined;
  servername?: string;
};

/** Sends requests that `fetch` can't: TRACE, repeated headers, another Host, paths that aren't normalized. */
export async function sendRaw(
  url: string,
  path: string,
  { method = "GET", headers = [], body, agent = false, ...connection }: RawOptions = {},
) {
  const { protocol, hostname, port, host } = new URL(url);
  const hasHost = headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === "host");
  const all = hasHost ? headers : ["host", host, ...headers];
  const request = protocol === "https:" ? requestHttps : requestHttp;
  const sent = request({ hostname, port, path, method, headers: all, agent, ...connection });
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  // A body that is refused may be cut off after the response.
  sent.on("error", () => {});
  const text = (await answer.toArray()).join("");
  return { status: answer.statusCode ?? 0, headers: answer.headers, text };
}

/** A server; `certificate`, in PEM, is trusted. */
export type Target = { url: string; certificate?: string };

/** A request; `expected` is the status of its successful response. */
export type LoadRequest = {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string | undefined;
  expected: number;
};

/** Sends a request and returns the text of its response. @throws Error with an unexpected status */
export async function sendRequest(
  { url, certificate: ca }: Target,
  { method, path, headers = {}, body, expected }: LoadRequest,
  agent?: Agent | false,
): Promise<string> {
  const length = body && { "content-length": String(Buffer.byteLength(body)) };
  const all = Object.entries({ ...length, ...headers }).flat();
  const { status, text } = await sendRaw(url, path, { method, headers: all, body, agent, ca });
  if (status !== expected) throw new Error(`${status} ${text.slice(0, 200)}`);
  return text;
}
