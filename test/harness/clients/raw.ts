import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";

type RawOptions = {
  method?: string;
  /** Names and values in turn, which allows repeated headers. The Host header is added. */
  headers?: string[];
  body?: string | Buffer;
};

/** Sends requests that `fetch` can't: TRACE, repeated headers, another Host, paths that aren't normalized. */
export async function sendRaw(
  url: string,
  path: string,
  { method = "GET", headers = [], body }: RawOptions = {},
) {
  const { hostname, port, host } = new URL(url);
  const hasHost = headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === "host");
  const all = hasHost ? headers : ["host", host, ...headers];
  const sent = request({ hostname, port, path, method, headers: all, agent: false });
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  // A body that is refused may be cut off after the response.
  sent.on("error", () => {});
  const text = (await answer.toArray()).join("");
  return { status: answer.statusCode ?? 0, headers: answer.headers, text };
}
