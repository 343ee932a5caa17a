import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { tryTo } from "../../resources/try-to.ts";
import { hostKeyOf } from "../http/client-ip.ts";

/** Returns how many files and connections this process may have open; undefined if that is unlimited or unknown. */
export function readDescriptorLimit(): number | undefined {
  const limits = tryTo(() => readFileSync("/proc/self/limits", "utf8"));
  const [, soft] = /^Max open files +(\d+)/m.exec(limits ?? "") ?? [];
  return soft === undefined ? undefined : Number(soft);
}

const RETRY_S = 5;
const BODY = "Too many connections are open from your address.\n";
const REFUSAL = `HTTP/1.1 503 Service Unavailable\r
Retry-After: ${RETRY_S}\r
Content-Type: text/plain\r
Content-Length: ${BODY.length}\r
Connection: close\r
\r
${BODY}`;
// For clients that don't read the response.
const REFUSAL_MS = 1000;

/** Limits each IPv4 address or /64 of IPv6 to half of the connections, so that none locks out the others (RFC 9110 §15.6.4). */
export function limitConnections(server: Server, descriptors = readDescriptorLimit()): void {
  if (descriptors === undefined) return;
  const max = Math.floor(descriptors / 2);
  const open = new Map<string, number>();
  function release(host: string) {
    const count = (open.get(host) ?? 0) - 1;
    if (count > 0) open.set(host, count);
    else open.delete(host);
  }
  server.prependListener("connection", (socket: Socket) => {
    const host = hostKeyOf(socket.remoteAddress ?? "");
    const count = open.get(host) ?? 0;
    if (count >= max) return refuse(socket);
    open.set(host, count + 1);
    socket.once("close", () => release(host));
  });
}

function refuse(socket: Socket): void {
  socket.on("error", () => {});
  socket.setTimeout(REFUSAL_MS, () => socket.destroy());
  socket.end(REFUSAL, () => socket.destroy());
}
