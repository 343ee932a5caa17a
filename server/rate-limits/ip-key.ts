import ipaddr from "ipaddr.js";
import { parseIpAddress } from "../http/ip-address.ts";

/** Returns the rate-limit key of the network that one caller may control: a /24 of IPv4, a /64 of IPv6. */
export function networkKeyOf(address: string): string {
  const ip = parseIpAddress(address);
  return ip instanceof ipaddr.IPv4 ? ip.octets.slice(0, 3).join(".") : hostKeyOf(address);
}

/** Returns the rate-limit key of one machine: an IPv4 address, or a /64 of IPv6. */
export function hostKeyOf(address: string): string {
  const ip = parseIpAddress(address);
  if (!ip) return address;
  if (ip instanceof ipaddr.IPv4) return ip.toString();
  const groups = ip.parts.slice(0, 4).map((group) => group.toString(16));
  return groups.join(":");
}
