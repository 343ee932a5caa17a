import { isIPv6 } from "node:net";

/** Who can have many addresses is one: /24 of IPv4, /64 of IPv6. */
export function networkOf(address: string): string {
  const host = hostOf(address);
  return isIPv6(plainOf(address)) ? host : host.split(".").slice(0, 3).join(".");
}

/** What one machine has: an address of IPv4, a /64 of IPv6. */
export function hostOf(address: string): string {
  const plain = plainOf(address);
  if (!isIPv6(plain)) return plain;
  const [head = "", tail = ""] = plain.split("::");
  const left = head.split(":").filter(Boolean);
  const right = tail.split(":").filter(Boolean);
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => "0");
  return [...left, ...zeros, ...right].slice(0, 4).join(":");
}

/** An address of IPv4 that came by IPv6, without the prefix. */
function plainOf(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/, "");
}
