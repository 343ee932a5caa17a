import { BlockList, isIPv4, isIPv6 } from "node:net";
import { isUnbroken } from "../text.ts";

/** The most characters of the address of a receiver. */
export const URL_MAX = 2048;
const PORTS = new Set(["", "443", "8443"]);
// Names that mean this machine or its network (RFC 6761 §6.3, RFC 6762 §3, and what ICANN reserved for private use).
const PRIVATE_NAME = /(^|\.)(localhost|local|internal)$/;

// What is not unicast on the public internet: IANA's special-purpose registry, multicast and reserved space.
const SPECIAL_IPV4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`;
// Only 2000::/3 is given out. Within it: Teredo and others (2001::/23), documentation, 6to4. Outside it, among others: mapped
// and compatible IPv4, NAT64 (64:ff9b::), private (fc00::/7), link-local and site-local addresses, multicast.
const GLOBAL_IPV6 = "2000::/3";
const SPECIAL_IPV6 = "2001::/23 2001:db8::/32 2002::/16 3fff::/20";

const specialIpv4 = blockList(SPECIAL_IPV4, "ipv4");
const globalIpv6 = blockList(GLOBAL_IPV6, "ipv6");
const specialIpv6 = blockList(SPECIAL_IPV6, "ipv6");

/** Whether an IP address, without brackets, is one of the public internet. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !specialIpv4.check(address, "ipv4");
  return isIPv6(address) && globalIpv6.check(address, "ipv6") && !specialIpv6.check(address, "ipv6");
}

/** Receivers that the operator vouches for: `host`, with any port, or `host:port`. */
export type AllowedHosts = ReadonlySet<string>;

/** Whether the operator vouches for the receiver of an address: it may be private, and take plain http. */
export function isVouchedFor(url: URL, allowed: AllowedHosts): boolean {
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  return allowed.has(url.hostname) || allowed.has(`${url.hostname}:${port}`);
}

/** Why a text cannot be the address of a webhook; nothing when it can. What a name resolves to is seen when it is used. */
export function refuseWebhookUrl(text: string, allowed: AllowedHosts): string | undefined {
  if (text.length > URL_MAX) return `An address has at most ${URL_MAX} characters.`;
  if (!isUnbroken(text) || text.includes("\\"))
    return "An address has no spaces, control characters or backslashes.";
  const url = URL.parse(text);
  if (!url || !/^https?:\/\/[^/]/i.test(text))
    return "This is not an absolute URL, such as https://example.com/hook.";
  if (url.username || url.password) return "An address with a user name or password in it is not accepted.";
  if (url.hash || text.includes("#")) return "An address with a fragment is not accepted.";
  if (isVouchedFor(url, allowed)) return undefined;
  if (url.protocol !== "https:") return "The scheme must be https.";
  if (!PORTS.has(url.port)) return "The port must be 443 or 8443.";
  return refuseHost(url.hostname);
}

/** The parser has written every form of an IPv4 address (`0x7f.1`, `2130706433`, full-width digits) as four numbers. */
function refuseHost(hostname: string): string | undefined {
  const host = hostname.replace(/^\[|\]$/g, "").replace(/\.+$/, "");
  if (host === "" || PRIVATE_NAME.test(host)) return "The host must be on the public internet.";
  if ((isIPv4(host) || isIPv6(host)) && !isPublicAddress(host))
    return "The address must be one of the public internet.";
  return undefined;
}

function blockList(ranges: string, family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const range of ranges.split(/\s+/)) {
    const [network = "", prefix] = range.split("/");
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
}
