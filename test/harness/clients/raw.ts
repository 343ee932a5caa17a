import { type IncomingHttpHeaders, request } from "node:http";

type RawOptions = {
  method?: string;
  /** Names and values in turn, which allows repeated headers. The Host header is added. */
  headers?: string[];
  body?: string | Buffer;
};

/** Sends requests that `fetch` can't: TRACE, repeated headers, another Host, paths that aren't normalized. */
export function sendRaw(
  url: string,
  path: string,
  { method = "GET", headers = [], body }: RawOptions = {},
): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
  const { hostname, port, host } = new URL(url);
  const hasHost = headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === "host");
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number;
    headers: IncomingHttpHeaders;
    text: string;
  }>();
  const sent = request(
    { hostname, port, path, method, headers: hasHost ? headers : ["host", host, ...headers], agent: false },
    async (answer) => {
      const text = (await answer.toArray()).join("");
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text });
    },
  );
  sent.on("error", reject);
  sent.end(body);
  return promise;
}
