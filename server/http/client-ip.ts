import type { IncomingMessage } from "node:http";
import { isIPv4, isIPv6 } from "node:net";
import type Koa from "koa";

// What proxies append to an address: `203.0.113.9:5678`, `[2001:db8::1]:5678`.
const IPV4_WITH_PORT = /^([\d.]+):\d+$/;
const IPV6_IN_BRACKETS = /^\[(.+)\](?::\d+)?$/;

/** The canonical text of an address (RFC 5952 for IPv6), and its 4 bytes or its 8 groups of 16 bits. */
export type IpAddress = { version: 4 | 6; text: string; parts: number[] };

/** Returns undefined for other text; an IPv4-mapped IPv6 address becomes IPv4. */
export function parseIpAddress(text: string): IpAddress | undefined {
  const withZone = (IPV4_WITH_PORT.exec(text) ?? IPV6_IN_BRACKETS.exec(text))?.[1] ?? text;
  // RFC 4007 §11: a zone means nothing on another machine, and may be any text.
  const [address = ""] = withZone.split("%", 1);
  if (isIPv4(address)) return { version: 4, text: address, parts: address.split(".").map(Number) };
  return isIPv6(address) ? parseIpv6(address) : undefined;
}

function parseIpv6(address: string): IpAddress {
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [start = [], end = []] = text.split("::").map(groupsOf);
  const parts = [...start, ...Array(8 - start.length - end.length).fill(0), ...end];
  if (!text.startsWith("::ffff:") || end.length !== 3) return { version: 6, text, parts };
  const bytes = end.slice(1).flatMap((group) => [group >> 8, group & 0xff]);
  return { version: 4, text: bytes.join("."), parts: bytes };
}

function groupsOf(text: string): number[] {
  return text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
}

export function trustProxies(app: Koa, proxies: number): void {
  if (proxies === 0) return;
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
  return (parseIpAddress(address) ?? parseIpAddress(direct))?.text ?? direct;
}

/** The address that the last proxy saw is last. */
export function forwardedFor({ headers }: IncomingMessage): string[] {
  return String(headers["x-forwarded-for"] ?? "")
    .split(",")
    .map((address) => address.trim())
    .filter(Boolean);
}
