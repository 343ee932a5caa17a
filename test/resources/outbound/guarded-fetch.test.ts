import diagnostics from "node:diagnostics_channel";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo, LookupFunction, Socket } from "node:net";
import test from "ava";
import { createDnsLookup } from "../../../resources/outbound/connections.ts";
import { createGuardedFetch, FetchFailed } from "../../../resources/outbound/guarded-fetch.ts";
import { type Api, apiAt } from "../../harness/clients/api.ts";
import { startNameServer } from "../../harness/name-server.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, waitForDelivery, waitUntilVerified } from "../../harness/webhooks.ts";

const LARGE = 64 * 1024 + 1;

const requests: string[] = [];
const server = http
  .createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    if (request.url === "/redirect") response.writeHead(302, { location: "/document" }).end();
    else if (request.url === "/large") response.end("x".repeat(LARGE));
    else if (request.url === "/cut")
      response.writeHead(200, { "content-length": "9" }).end("x", () => response.destroy());
    else if (request.url === "/empty") response.writeHead(204).end();
    else response.writeHead(200, { "content-type": "application/json", "set-cookie": "a=b" }).end('{"a":1}');
  })
  .listen(0, "127.0.0.1");
await once(server, "listening");

const names = await startNameServer();
const receiver = await startReceiver();
const { port: receiverPort } = new URL(receiver.url("/"));
const service = await startTestService(
  { WEBHOOK_ALLOW_HOSTS: `localhost:${receiverPort}` },
  { lookup: createDnsLookup([names.address]), timeouts: { connectMs: 8_000, totalMs: 10_000 } },
);

test.after.always(() => server.close());
test.after.always(() => Promise.all([service.close(), receiver.close(), names.close()]));
test.beforeEach(() => {
  tried = [];
});

const { port } = server.address() as AddressInfo;
const origin = `http://127.0.0.1:${port}`;

/** Resolves each hostname to the IP address in front of its first `.test`. */
const lookup: LookupFunction = (hostname, _options, done) =>
  done(null, [{ address: hostname.replaceAll("-", ".").replace(".test", ""), family: 4 }]);

const guarded = createGuardedFetch({ allowed: new Set(), userAgent: "test", lookup });
const fetch = createGuardedFetch({ allowed: new Set([`127.0.0.1:${port}`]), userAgent: "test", lookup });

const REFUSED = [
  `http://127.0.0.1:${port}/document`,
  `https://127.0.0.1:${port}/document`,
  "https://127.0.0.1/document",
  "https://2130706433/document",
  "https://[::1]/document",
  "https://[::ffff:127.0.0.1]/document",
  "https://localhost/document",
  "https://service.internal/document",
  "http://example.com/document",
  "https://example.com:8443/document",
  "https://user:secret@example.com/document",
  "file:///etc/passwd",
  "document",
  // Names that resolve to private addresses.
  "https://127-0-0-1.test/document",
  "https://10-1-2-3.test/document",
  "https://169-254-169-254.test/document",
];

for (const url of REFUSED) {
  test(`${url.replace(String(port), "…")} is not fetched`, async (t) => {
    await t.throwsAsync(guarded(url), { instanceOf: FetchFailed });
  });
}

test.serial("nothing was sent to any of them", (t) => {
  t.deepEqual(requests, []);
});

test.serial("a host that the operator exempts may be private and use http", async (t) => {
  const response = await fetch(`${origin}/document`);
  t.is(response.status, 200);
  t.deepEqual(await response.json(), { a: 1 });
  t.is(response.headers.get("content-type"), "application/json");
  t.is(response.headers.get("set-cookie"), null);
});

test.serial("a redirect is not followed", async (t) => {
  requests.length = 0;
  t.is((await fetch(`${origin}/redirect`)).status, 302);
  t.deepEqual(requests, ["GET /redirect"]);
});

test.serial("a status without a body is no document", async (t) => {
  t.is((await fetch(`${origin}/empty`)).status, 502);
});

for (const [path, message] of [
  ["/large", /larger than 65536 bytes/],
  ["/cut", /incomplete|failed/],
] as const) {
  test.serial(
    `a response that ${path === "/large" ? "is too large" : "ends early"} is an error`,
    async (t) => {
      await t.throwsAsync(fetch(origin + path), { instanceOf: FetchFailed, message });
    },
  );
}

test.serial("a host that refuses connections is an error", async (t) => {
  const closed = createGuardedFetch({ allowed: new Set(["127.0.0.1"]), userAgent: "test" });
  await t.throwsAsync(closed("http://127.0.0.1:1/"), {
    instanceOf: FetchFailed,
    message: "the request failed",
  });
});

const createApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));

/** The addresses that this process tried to connect to on a port of webhooks. */
let tried: string[] = [];
diagnostics.subscribe("net.client.socket", (message) => {
  const { socket } = message as { socket: Socket };
  socket.on("connectionAttempt", (ip: string, of: number) => {
    if (of === 443 || of === 8443) tried.push(ip);
  });
});

const NOT_PUBLIC = "The hostname resolves to an IP address that is not on the public internet.";
// Neither allocated nor reserved: the former IPv6 test network (6bone).
const UNALLOCATED = "3ffe::1";

/** Returns the first attempt to deliver to a URL: of the test event that verifies it, or if it is accepted, of one after it. */
async function attemptAt(url: string, api?: Api, { isAccepted = false } = {}) {
  const own = api ?? (await createApi());
  const webhook = await createWebhook(own, url, ["webhook.test"]);
  if (isAccepted) {
    await waitUntilVerified(own, `/v1/webhooks/${webhook.id}`);
    await own.send("POST", `/v1/webhooks/${webhook.id}/test`);
  }
  const { attempts, status } = await waitForDelivery(
    own,
    webhook,
    (delivery) => delivery.attempts.length > 0,
  );
  return { status, attempt: attempts[0] };
}

const PRIVATE: [name: string, ...addresses: string[]][] = [
  ["loopback", "127.0.0.1"],
  ["ten", "10.0.0.1"],
  ["metadata", "169.254.169.254"],
  ["carrier", "100.64.0.1"],
  ["zero", "0.0.0.0"],
  ["broadcast", "255.255.255.255"],
  ["loopback-6", "::1"],
  ["any-6", "::"],
  ["mapped", "::ffff:7f00:1"],
  ["compatible", "::7f00:1"],
  ["nat64", "64:ff9b::7f00:1"],
  ["teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
  ["six-to-four", "2002:7f00:1::"],
  ["unique-local", "fd00::1"],
  ["link-local", "fe80::1"],
  ["site-local", "fec0::1"],
  // Not assigned to anyone (RFC 4291 §2.4). The agent that makes the connections considers them public.
  ["unassigned", "4000::1"],
  ["unassigned-below", "1::1"],
  ["unassigned-above", "fe00::1"],
  ["one-of-many", "93.184.216.34", "10.0.0.1"],
  ["one-of-both", "127.0.0.1", UNALLOCATED],
];
for (const [name, ...addresses] of PRIVATE) {
  test.serial(
    `no connection is made to a hostname that resolves to ${addresses.join(" and ")}`,
    async (t) => {
      const host = `${name}.example.com`;
      names.resolve(host, addresses);
      const { status, attempt } = await attemptAt(`https://${host}/hook`);
      t.is(status, "pending", "the DNS record may be fixed");
      t.is(attempt?.error, NOT_PUBLIC);
      t.is(attempt?.status, undefined);
      t.deepEqual(tried, []);
      t.deepEqual(names.asked(host).sort(), ["A", "AAAA"]);
    },
  );
}

test.serial(
  "a hostname is resolved once per attempt, and the connection uses the checked address",
  async (t) => {
    const host = "rebinding.example.com";
    names.resolve(host, [UNALLOCATED], ["127.0.0.1", "::1"]);
    const { attempt } = await attemptAt(`https://${host}:8443/hook`);
    t.truthy(attempt?.error);
    t.not(attempt?.error, NOT_PUBLIC);
    t.deepEqual(tried, [UNALLOCATED]);
    t.deepEqual(names.asked(host).sort(), ["A", "AAAA"]);
  },
);

test.serial("no connection is made to a hostname that has become private", async (t) => {
  const host = "moved.example.com";
  names.resolve(host, [UNALLOCATED], ["10.0.0.1"]);
  const api = await createApi();
  t.not((await attemptAt(`https://${host}/hook`, api)).attempt?.error, NOT_PUBLIC);
  t.is((await attemptAt(`https://${host}/other`, api)).attempt?.error, NOT_PUBLIC);
  t.deepEqual(tried, [UNALLOCATED]);
});

test.serial("an endpoint on loopback is reachable only by the hostname on the allowlist", async (t) => {
  names.resolve("alias.example.com", ["127.0.0.1"]);
  const api = await createApi();
  const rejected = await api.send("POST", "/v1/webhooks", {
    json: { url: `http://127.0.0.1:${receiverPort}/alias`, events: ["webhook.test"] },
  });
  t.is(rejected.status, 422);
  t.is((await attemptAt("https://alias.example.com/alias", api)).attempt?.error, NOT_PUBLIC);
  const { status, attempt } = await attemptAt(`http://localhost:${receiverPort}/allowed`, api, {
    isAccepted: true,
  });
  t.deepEqual([status, attempt?.status], ["succeeded", 204]);
  t.is(receiver.received("/allowed").length, 1);
  t.is(receiver.received("/alias").length, 0);
});

const UNRESOLVED: [name: string, addresses: string[] | undefined, error: string][] = [
  ["unknown.example.com", undefined, "The hostname does not exist."],
  ["empty.example.com", [], "The hostname does not exist."],
];
for (const [name, addresses, error] of UNRESOLVED) {
  test.serial(`a delivery to ${name} fails with: ${error}`, async (t) => {
    if (addresses) names.resolve(name, addresses);
    const { status, attempt } = await attemptAt(`https://${name}/hook`);
    t.is(status, "pending");
    t.is(attempt?.error, error);
  });
}
