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

/** `share` is how many times the limit of the smallest network this one gets. */
export type Network = { key: string; share: number };

// IPv6 providers assign a /64, a /56 or a /48 to one customer.
const IPV6_NETWORKS = [
  { bits: 64, share: 1 },
  { bits: 56, share: 2 },
  { bits: 48, share: 4 },
];

/** Returns the networks that one caller may control, smallest first: a /24 of IPv4; a /64, a /56 and a /48 of IPv6. */
export function networksOf(address: string): Network[] {
  const ip = parseIpAddress(address);
  if (ip?.version !== 6) return [{ key: networkKeyOf(address), share: 1 }];
  return IPV6_NETWORKS.map(({ bits, share }) => ({ key: prefixOf(ip, bits), share }));
}

export function siteKeyOf(address: string): string {
  return (networksOf(address).at(-1) as Network).key;
}

/** Returns the rate-limit key of the network that one caller may control: a /24 of IPv4, a /64 of IPv6. */
export function networkKeyOf(address: string): string {
  const ip = parseIpAddress(address);
  return ip?.version === 4 ? ip.parts.slice(0, 3).join(".") : hostKeyOf(address);
}

/** Returns the rate-limit key of one machine: an IPv4 address, or a /64 of IPv6. */
export function hostKeyOf(address: string): string {
  const ip = parseIpAddress(address);
  if (!ip) return address;
  return ip.version === 4 ? ip.text : prefixOf(ip, 64);
}

/** The length of a prefix is part of its key unless it is 64. */
function prefixOf({ parts }: IpAddress, bits: number): string {
  const groups = parts.slice(0, Math.ceil(bits / 16));
  const rest = bits % 16;
  if (rest) groups.push((groups.pop() as number) & (0xffff << (16 - rest)));
  const text = groups.map((group) => group.toString(16)).join(":");
  return bits === 64 ? text : `${text}/${bits}`;
}
