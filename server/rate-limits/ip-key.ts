import { type IpAddress, parseIpAddress } from "../http/client-ip.ts";

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
