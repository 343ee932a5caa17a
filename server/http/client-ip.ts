import type { IncomingMessage } from "node:http";
import type Koa from "koa";
import { parseIpAddress } from "./ip-address.ts";

/** Makes `ctx.ip` the address of the client behind a known number of proxies. */
export function trustProxies(app: Koa, proxies: number): void {
  Object.defineProperty(app.request, "ip", {
    configurable: true,
    get(this: Koa.Request) {
      return clientAddress(this.req, proxies);
    },
  });
}

/**
 * Returns the address of the client behind a known number of proxies. Each proxy appends the address that it sees to
 * `X-Forwarded-For`, so the client's is that many from the right; everything before it can be forged. A port is removed,
 * and each address has one notation. Text that is no address counts as the last proxy's own.
 */
export function clientAddress(request: IncomingMessage, proxies: number): string {
  const direct = request.socket.remoteAddress ?? "";
  if (proxies === 0) return direct;
  const address = forwardedFor(request).at(-proxies) ?? direct;
  return (parseIpAddress(address) ?? parseIpAddress(direct))?.toString() ?? direct;
}

/** Returns the addresses in `X-Forwarded-For`, the one that the last proxy saw last. */
export function forwardedFor({ headers }: IncomingMessage): string[] {
  return String(headers["x-forwarded-for"] ?? "")
    .split(",")
    .map((address) => address.trim())
    .filter(Boolean);
}
