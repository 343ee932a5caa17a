import { BlockList, isIPv4, isIPv6 } from "node:net";

// Names of this machine or its network (RFC 6761 §6.3, RFC 6762 §3; ICANN reserved `internal`).
const PRIVATE_NAME = /(^|\.)(localhost|local|internal)$/;

// Everything except public unicast: IANA's special-purpose registry, multicast and reserved space.
const SPECIAL_IPV4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`;
// Azure's platform in every virtual machine, which gives it its configuration and certificates:
// https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
const AZURE_PLATFORM = "168.63.129.16/32";
// Only 2000::/3 is global unicast, without Teredo and others (2001::/23), documentation and 6to4. The rest includes
// mapped and compatible IPv4, NAT64 (64:ff9b::), private (fc00::/7), link-local, site-local and multicast.
const GLOBAL_IPV6 = "2000::/3";
const SPECIAL_IPV6 = "2001::/23 2001:db8::/32 2002::/16 3fff::/20";

const specialIpv4 = blockList(`${SPECIAL_IPV4} ${AZURE_PLATFORM}`, "ipv4");
const globalIpv6 = blockList(GLOBAL_IPV6, "ipv6");
const specialIpv6 = blockList(SPECIAL_IPV6, "ipv6");

/** Returns whether an IP address, without brackets, is on the public internet. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !specialIpv4.check(address, "ipv4");
  return isIPv6(address) && globalIpv6.check(address, "ipv6") && !specialIpv6.check(address, "ipv6");
}

/** The hosts that the operator exempts from the guard: `host` for any port, or `host:port`. */
export type AllowedHosts = ReadonlySet<string>;

/** Returns whether the operator exempts the host of a URL; it may then be private and use plain http. */
export function isAllowedHost(url: URL, allowed: AllowedHosts): boolean {
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  return allowed.has(url.hostname) || allowed.has(`${url.hostname}:${port}`);
}

/** Expects a parsed hostname: the URL parser normalizes every form of IPv4 (`0x7f.1`, full-width digits). */
export function mayBePublic(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  if (host === "" || host.endsWith(".") || PRIVATE_NAME.test(host)) return false;
  return (!isIPv4(host) && !isIPv6(host)) || isPublicAddress(host);
}

function blockList(ranges: string, family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const range of ranges.split(/\s+/)) {
    const [network = "", prefix] = range.split("/");
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
}

/** Makes no lookup. Outside production, fetching exempts local addresses. */
export function isPublicUrl(text: unknown): boolean {
  const url = typeof text === "string" ? URL.parse(text) : undefined;
  if (url?.protocol !== "https:" || url.pathname === "/") return false;
  const host = url.hostname.replace(/\.$/, "");
  const isIpAddress = host.startsWith("[") || /(^|\.)\d+$/.test(host);
  const isLocal = !host.includes(".") || host.endsWith(".localhost") || host.endsWith(".local");
  return !isIpAddress && !isLocal;
}
