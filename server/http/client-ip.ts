import type { IncomingMessage } from "node:http";
import { isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";
import type Koa from "koa";

// What proxies append to an address: `203.0.113.9:5678`, `[2001:db8::1]:5678`.
const IPV4_WITH_PORT = /^([\d.]+):\d+$/;
const IPV6_IN_BRACKETS = /^\[(.+)\](?::\d+)?$/;

/** Returns undefined for other text; an IPv4-mapped IPv6 address becomes IPv4. */
export function parseIpAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const withZone = (IPV4_WITH_PORT.exec(text) ?? IPV6_IN_BRACKETS.exec(text))?.[1] ?? text;
  // RFC 4007 §11: a zone means nothing on another machine, and may be any text.
  const [address = ""] = withZone.split("%", 1);
  // By itself, ipaddr.js also reads `127` and `0x7f.1`.
  return isIPv4(address) || isIPv6(address) ? ipaddr.process(address) : undefined;
}

export function trustProxies(app: Koa, proxies: number): void {
  Object.defineProperty(app.request, "ip", {
    configurable: true,
    get(this: Koa.Request) {
      return clientAddress(this.req, proxies);
    },
  });
}

/** Each proxy appends the address it sees to `X-Forwarded-For`; everything before those can be forged. */
export function clientAddress(request: IncomingMessage, proxies: number): string {
  const direct = request.socket.remoteAddress ?? "";
  if (proxies === 0) return direct;
  const address = forwardedFor(request).at(-proxies) ?? direct;
  return (parseIpAddress(address) ?? parseIpAddress(direct))?.toString() ?? direct;
}

/** The address that the last proxy saw is last. */
export function forwardedFor({ headers }: IncomingMessage): string[] {
  return String(headers["x-forwarded-for"] ?? "")
    .split(",")
    .map((address) => address.trim())
    .filter(Boolean);
}
