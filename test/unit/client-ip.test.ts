import type { IncomingMessage } from "node:http";
import test from "ava";
import { clientAddress, hostKeyOf, networkKeyOf, networksOf } from "../../server/http/client-ip.ts";
import { describeBrowser } from "../../server/http/describe-browser.ts";

const PROXY = "198.51.100.250";

/** Returns the address of a client whose request came from the proxy with this `X-Forwarded-For`. */
function addressOf(forwardedFor: string | undefined, proxies = 1): string {
  const headers = {
    ...(forwardedFor !== undefined && { "x-forwarded-for": forwardedFor }),
    "x-real-ip": "192.0.2.1",
  };
  return clientAddress({ headers, socket: { remoteAddress: PROXY } } as unknown as IncomingMessage, proxies);
}

const LONG = "x".repeat(8000);
const ADDRESSES: [proxies: number, forwardedFor: string | undefined, address: string][] = [
  [0, "203.0.113.1", PROXY],
  [1, undefined, PROXY],
  [1, "203.0.113.1", "203.0.113.1"],
  [1, "spoofed, 203.0.113.1", "203.0.113.1"],
  [2, "spoofed, 203.0.113.1, 10.0.0.1", "203.0.113.1"],
  [2, "10.0.0.1", PROXY],
  [1, " , 203.0.113.1 ,", "203.0.113.1"],
  [1, "2001:0DB8:0:0::1", "2001:db8::1"],
  [1, "[2001:db8::1]:5678", "2001:db8::1"],
  [1, "2001:db8::1%zone", "2001:db8::1"],
  [1, `fe80::1%${LONG}`, "fe80::1"],
  [1, "203.0.113.1:5678", "203.0.113.1"],
  [1, "::ffff:203.0.113.1", "203.0.113.1"],
  ...["unknown", "_hidden", "", ",,,", "1.2.3", "0x7f.1", "<script>", LONG].map(
    (text): [number, string, string] => [1, text, PROXY],
  ),
];

test("the client's address is what the configured number of proxies saw, in one spelling, or the proxy's own", (t) => {
  for (const [proxies, forwardedFor, address] of ADDRESSES)
    t.is(addressOf(forwardedFor, proxies), address, `${proxies} ${forwardedFor?.slice(0, 40)}`);
});

test("limits count a /24 of IPv4, and a /64, a /56 and a /48 of IPv6", (t) => {
  const keysOf = (address: string) => networksOf(address).map(({ key, share }) => [key, share]);
  t.deepEqual(keysOf("203.0.113.9"), [["203.0.113", 1]]);
  t.deepEqual(keysOf("::ffff:203.0.113.9"), [["203.0.113", 1]]);
  t.deepEqual(keysOf("2001:db8:1:203::1"), [
    ["2001:db8:1:203", 1],
    ["2001:db8:1:200/56", 2],
    ["2001:db8:1/48", 4],
  ]);
});

const KEYS: [address: string, network: string, host: string][] = [
  ["198.51.100.7", "198.51.100", "198.51.100.7"],
  ["198.51.100.7:5678", "198.51.100", "198.51.100.7"],
  ["::FFFF:198.51.100.7", "198.51.100", "198.51.100.7"],
  ["2001:0DB8:0001:0002::1", "2001:db8:1:2", "2001:db8:1:2"],
  ["[2001:db8:1:2::1]:5678", "2001:db8:1:2", "2001:db8:1:2"],
  ["fe80::1%eth0", "fe80:0:0:0", "fe80:0:0:0"],
  ["::1", "0:0:0:0", "0:0:0:0"],
  ["unknown", "unknown", "unknown"],
];

test("every spelling of an address counts for one network and one host", (t) => {
  for (const [address, network, host] of KEYS)
    t.deepEqual([networkKeyOf(address), hostKeyOf(address)], [network, host], address);
});

const LINUX = "Mozilla/5.0 (X11; Linux x86_64)";
const WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)";
const MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)";
const ANDROID = "Mozilla/5.0 (Linux; Android 10; K)";
const IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X)";
const BLINK = "AppleWebKit/537.36 (KHTML, like Gecko)";
const WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)";

const AGENTS: [userAgent: string, description: string][] = [
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
  ["Mozilla/5.0 (Android 15; Mobile; rv:142.0) Gecko/142.0 Firefox/142.0", "Firefox on Android"],
  [`${IPHONE} ${WEBKIT} FxiOS/142.0 Mobile/15E148 Safari/605.1.15`, "Firefox on iOS"],
  [`${WINDOWS} ${BLINK} Chrome/140.0 Safari/537.36 Edg/140.0`, "Edge on Windows"],
  [`${IPHONE} ${WEBKIT} Version/17.0 EdgiOS/140.0.3485.54 Mobile/15E148 Safari/605.1.15`, "Edge on iOS"],
  [`${ANDROID} ${BLINK} Chrome/140.0 Mobile Safari/537.36`, "Chrome on Android"],
  [`${LINUX} ${BLINK} Chromium/140.0.7339.16 Chrome/140.0.7339.16 Safari/537.36`, "Chrome on Linux"],
  [`${MAC} ${BLINK} Chrome/140.0.0.0 Safari/537.36`, "Chrome on macOS"],
  [`${IPHONE} ${WEBKIT} CriOS/140.0.7339.39 Mobile/15E148 Safari/604.1`, "Chrome on iOS"],
  [`Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${BLINK} Chrome/140.0.0.0 Safari/537.36`, "Chrome on ChromeOS"],
  [`${ANDROID} ${BLINK} SamsungBrowser/28.0 Chrome/130 Safari/537.36`, "Samsung Internet on Android"],
  [`${WINDOWS} ${BLINK} Chrome/138.0.0.0 Safari/537.36 OPR/122.0.0.0`, "Opera on Windows"],
  [`${MAC} ${WEBKIT} Version/18.6 Safari/605.1.15`, "Safari on macOS"],
  [`${IPHONE} ${WEBKIT} Version/18.0 Mobile/15E148 Safari/604.1`, "Safari on iOS"],
  // GNOME Web. Safari itself runs on Apple's systems only.
  [`${LINUX} ${WEBKIT} Version/18.0 Safari/605.1.15`, "Unknown browser on Linux"],
  ["curl/8.14.1", "curl"],
  ["Mozilla/5.0 (compatible)", "Unknown browser"],
  ["<script>alert(1)</script>", "Unknown browser"],
  ["", "Unknown browser"],
];

test("a user agent is described by its browser and system, or by the name of its program", (t) => {
  for (const [userAgent, description] of AGENTS) t.is(describeBrowser(userAgent), description);
  t.true(describeBrowser("x".repeat(10_000)).length <= 100);
});
