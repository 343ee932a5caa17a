import { once } from "node:events";
import { type Agent, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";

/** A request of the load; `expected` is the status of its successful response. */
export type LoadRequest = {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
  expected: number;
};

/** A server; `certificate`, in PEM, is trusted. */
export type Target = { url: string; certificate?: string };

/** Sends a request and returns the text of its response. @throws Error with an unexpected status */
export async function sendRequest(
  { url, certificate }: Target,
  { method, path, headers = {}, body, expected }: LoadRequest,
  agent: Agent | false = false,
): Promise<string> {
  const { hostname, port, protocol, host } = new URL(url);
  const outgoing = (protocol === "https:" ? requestHttps : requestHttp)({
    ...{ method, path, hostname, port, agent },
    ...(certificate && { ca: certificate }),
    headers: { host, ...(body && { "content-length": String(Buffer.byteLength(body)) }), ...headers },
  });
  outgoing.end(body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  // A body that is refused may be cut off after the response.
  outgoing.on("error", () => {});
  const text = (await response.toArray()).join("");
  if (response.statusCode !== expected) throw new Error(`${response.statusCode} ${text.slice(0, 200)}`);
  return text;
}
