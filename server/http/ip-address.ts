import { isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";

// What proxies append to an address: `203.0.113.9:5678`, `[2001:db8::1]:5678`.
const IPV4_WITH_PORT = /^([\d.]+):\d+$/;
const IPV6_IN_BRACKETS = /^\[(.+)\](?::\d+)?$/;

/** Parses an IP address, with or without a port. An IPv4-mapped IPv6 address becomes IPv4; undefined for other text. */
export function parseIpAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const withZone = (IPV4_WITH_PORT.exec(text) ?? IPV6_IN_BRACKETS.exec(text))?.[1] ?? text;
  // RFC 4007 §11: a zone means nothing on another machine, and may be any text.
  const [address = ""] = withZone.split("%", 1);
  // By itself, ipaddr.js also reads `127` and `0x7f.1`.
  return isIPv4(address) || isIPv6(address) ? ipaddr.process(address) : undefined;
}
