import { connect, type Socket } from "node:net";
import type { Request } from "./load.ts";

/** A keep-alive connection to a server. */
export type Connection = Awaited<ReturnType<typeof openConnection>>;

const LAST_CHUNK = "\r\n0\r\n\r\n";

/**
 * Opens a connection. It uses sockets directly, because a generator that is slower than the server would measure itself.
 */
export async function openConnection(port: number) {
  const socket: Socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  let received = "";
  let answered: ((body: string) => void) | undefined;
  let settle: ((status: number) => void) | undefined;
  let fail: ((error: Error) => void) | undefined;

  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => {
    received += chunk;
    const head = received.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = /\r\ncontent-length: *(\d+)/i.exec(received.slice(0, head))?.[1];
    // Only better-auth sends chunks, and the response ends with what has arrived, because no request is pipelined.
    const isChunked = length === undefined && received.slice(0, head).includes("chunked");
    if (isChunked && !received.endsWith(LAST_CHUNK)) return;
    const end = isChunked ? received.length : head + 4 + Number(length ?? 0);
    if (received.length < end) return;
    const status = Number(received.slice(9, 12));
    const body = answered && received.slice(head + 4, end);
    received = received.slice(end);
    if (body !== undefined) answered?.(body);
    settle?.(status);
  });
  socket.on("error", (error) => fail?.(error));
  socket.on("close", () => fail?.(new Error("the server closed the connection")));

  return {
    ask: (request: Request) =>
      new Promise<number>((resolve, reject) => {
        settle = resolve;
        fail = reject;
        answered = typeof request === "string" ? undefined : request.answered;
        socket.write(typeof request === "string" ? request : request.text, "latin1");
      }),
    close: () => socket.destroy(),
  };
}

export function post(host: string, path: string, type: string, body: string, headers = ""): string {
  return `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n${headers}\r\n${body}`;
}

export function get(host: string, path: string, headers = ""): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n`;
}
