import ipaddr from "ipaddr.js";
import { parseIpAddress } from "./ip-address.ts";

/** Returns the network of an address in CIDR notation: a /24 of IPv4, a /64 of IPv6. */
export function networkOf(address: string): string {
  const ip = parseIpAddress(address);
  if (!ip) return "unknown";
  const bits = ip instanceof ipaddr.IPv4 ? 24 : 64;
  const base = ip instanceof ipaddr.IPv4 ? ipaddr.IPv4 : ipaddr.IPv6;
  return `${base.networkAddressFromCIDR(`${ip}/${bits}`)}/${bits}`;
}
