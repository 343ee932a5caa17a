import type { LookupFunction } from "node:net";
import test from "ava";
import { createConnections, NOT_PUBLIC, publicLookup } from "../../resources/outbound/connections.ts";
import { createGuardedFetch, FetchFailed } from "../../resources/outbound/guarded-fetch.ts";
import { validateWebhookUrl } from "../../resources/webhooks/schema.ts";
import { words } from "../harness/words.ts";

const NO_HOSTS = new Set<string>();

const ACCEPTED = words(`
  https://example.com/hook https://example.com:443/hook https://example.com:8443/hook?key=value
  HTTPS://EXAMPLE.COM/hook https://xn--bcher-kva.example/hook https://localhost.example.com/hook
  https://8.8.8.8/hook https://168.63.129.15/hook https://172.15.255.255/hook https://172.32.0.0/hook
  https://100.63.255.255/hook https://[2606:4700:4700::1111]/hook`);

test("public https URLs on ports 443 and 8443 are accepted as webhook URLs", (t) => {
  for (const url of ACCEPTED) t.is(validateWebhookUrl(url, NO_HOSTS), undefined, url);
});

const REFUSED: Record<string, string> = {
  "a non-public IPv4 address": `0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254
    168.63.129.16 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.0.1
    198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255`,
  "an IPv4 address in another notation": `2130706433 017700000001 0x7f000001 0x7f.0.0.1 0x7f.1 0177.0.0.1 127.1 127.0.1
    0 127.0.0.1. ①②⑦.⓪.⓪.① 127。0。0。1 0xa9fea9fe 2852039166 %31%32%37.0.0.1`,
  "a non-public IPv6 address": `[::] [::1] [0:0:0:0:0:0:0:1] [100::1] [2001:2::1] [2001:db8::1] [3fff::1] [5f00::1]
    [fc00::1] [fd00:ec2::254] [fe80::1] [febf::1] [fec0::1] [ff02::1] [4000::1] [1::1] [fe00::1]`,
  "an IPv6 address that embeds an IPv4 address": `[::127.0.0.1] [::7f00:1] [::ffff:127.0.0.1] [::ffff:7f00:1]
    [::ffff:8.8.8.8] [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b::808:808] [64:ff9b:1::a00:1] [2001::1]
    [2001:0:4136:e378:8000:63bf:3fff:fdd2] [2002:7f00:1::] [2002:a9fe:a9fe::1]`,
  "a hostname of this machine or a private network": `localhost LOCALHOST localhost. localhost.. app.localhost
    printer.local metadata.google.internal metadata.google.internal. ｌocalhost`,
};
for (const [kind, hosts] of Object.entries(REFUSED))
  test(`${kind} is rejected on every allowed port`, (t) => {
    for (const host of words(hosts))
      for (const url of [`https://${host}/hook`, `https://${host}:8443/`])
        t.regex(validateWebhookUrl(url, NO_HOSTS) ?? "accepted", /^must be on the public internet/, url);
  });

const MALFORMED: Record<string, string[]> = {
  "another scheme than https": words(`
    http://example.com/hook http://example.com:443/hook ftp://example.com/hook file:///etc/passwd
    gopher://example.com:443/ data:text/plain,x javascript:alert(1) wss://example.com/hook`),
  "another port": [22, 80, 0, 6379, 65_536].map((port) => `https://example.com:${port}/hook`),
  "a username or password": words(`
    https://user@example.com/hook https://user:password@example.com/hook https://example.com@127.0.0.1/hook
    https://@127.0.0.1/hook`),
  "a fragment": ["https://example.com/hook#part", "https://example.com/hook#"],
  "characters that parsers read differently": [
    ...["https://example.com\\@127.0.0.1/", "https://example.com/a hook", "https://example.com/\r\nX: y"],
    ...["https://exam\tple.com/", "https://example.com/\u0000", "https://example.com/\ud800"],
  ],
  "no scheme or no host": ["https:///hook", "https:/example.com/hook", "example.com/hook", "/hook", ""],
  "over 2048 characters": [`https://example.com/${"x".repeat(2048)}`],
};
for (const [what, urls] of Object.entries(MALFORMED))
  test(`a webhook URL with ${what} is rejected`, (t) => {
    for (const url of urls) t.regex(validateWebhookUrl(url, NO_HOSTS) ?? "accepted", /^must /, url);
  });

const HOSTS = new Set(["127.0.0.1:9000", "receiver.test", "[::1]", "10.1.2.3"]);
const ALLOWED = words(`
  http://127.0.0.1:9000/hook https://127.0.0.1:9000/hook http://2130706433:9000/hook http://receiver.test/hook
  http://receiver.test:1234/hook http://RECEIVER.test/hook http://[::1]:3000/hook https://10.1.2.3/hook
  https://example.com/hook`);
const NOT_ALLOWED = words(`
  http://127.0.0.1:9001/hook http://127.0.0.1/hook https://127.0.0.1/hook http://127.0.0.2:9000/hook
  http://localhost:9000/hook http://other.receiver.test/hook http://receiver.test.example.com/hook
  http://example.com/hook http://[::ffff:127.0.0.1]:9000/hook https://10.1.2.4/hook
  http://user:password@receiver.test/hook ftp://receiver.test/hook http://example.com/?receiver.test`);
test("the operator's allowlist exempts its hosts, and no others", (t) => {
  for (const url of ALLOWED) t.is(validateWebhookUrl(url, HOSTS), undefined, url);
  for (const url of NOT_ALLOWED) t.not(validateWebhookUrl(url, HOSTS), undefined, url);
});

// Neither allocated nor reserved: the former IPv6 test network (6bone).
const UNALLOCATED = "3ffe::1";

/** Resolves any hostname to these addresses, behind the guard. */
function resolve(addresses: string[]): Promise<unknown> {
  const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  const lookup = publicLookup((_hostname, _options, done) => done(null, found));
  const { promise, resolve, reject } = Promise.withResolvers();
  lookup("host.test", { all: true }, (error, list) => (error ? reject(error) : resolve(list)));
  return promise;
}

test("a hostname is rejected if one of its addresses is not public, in every form that DNS has", async (t) => {
  for (const addresses of [
    ...words("127.0.0.1 10.0.0.1 169.254.169.254 0.0.0.0 ::1 :: ::ffff:7f00:1 ::7f00:1").map((one) => [one]),
    ...words("64:ff9b::7f00:1 2002:7f00:1:: fd00::1 fe80::1 fec0::1").map((one) => [one]),
    ["93.184.216.34", "10.0.0.1"],
    ["127.0.0.1", UNALLOCATED],
  ])
    await t.throwsAsync(resolve(addresses), { message: NOT_PUBLIC }, addresses.join());
  t.deepEqual(await resolve([UNALLOCATED]), [{ address: UNALLOCATED, family: 6 }]);
});

test("no connection is made to an IP address that isn't public, for which there is no lookup", (t) => {
  const startRequest = createConnections(NO_HOSTS);
  for (const host of words("127.0.0.1 169.254.169.254 10.0.0.1 [::1] [::ffff:10.0.0.1] [fd00::1] [4000::1]"))
    t.throws(() => startRequest(new URL(`https://${host}/`), {}), { message: NOT_PUBLIC }, host);
});

test("documents are fetched from public https URLs on port 443 only", async (t) => {
  const lookup: LookupFunction = () => t.fail("resolved");
  const fetch = createGuardedFetch({ allowed: NO_HOSTS, userAgent: "test", lookup });
  for (const url of words(`
    http://127.0.0.1:8080/document https://127.0.0.1/document https://2130706433/document https://[::1]/document
    https://[::ffff:127.0.0.1]/document https://localhost/document https://service.internal/document
    http://example.com/document https://example.com:8443/document https://user:secret@example.com/document
    file:///etc/passwd document`))
    await t.throwsAsync(fetch(url), { instanceOf: FetchFailed, message: /must be a public https URL/ }, url);
});
