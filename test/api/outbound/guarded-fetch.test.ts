import diagnostics from "node:diagnostics_channel";
import type { LookupFunction, Socket } from "node:net";
import test from "ava";
import { createDnsLookup, NOT_PUBLIC } from "../../../resources/outbound/connections.ts";
import { createGuardedFetch, FetchFailed } from "../../../resources/outbound/guarded-fetch.ts";
import { createSend } from "../../../resources/webhooks/send.ts";
import { startApp } from "../../harness/clients/app-server.ts";
import { startNameServer } from "../../harness/name-server.ts";

const requests: string[] = [];
const app = await startApp((request, response) => {
  requests.push(`${request.method} ${request.url}`);
  if (request.url === "/redirect") response.writeHead(302, { location: "/document" }).end();
  else if (request.url === "/large") response.end("x".repeat(64 * 1024 + 1));
  else if (request.url === "/cut")
    response.writeHead(200, { "content-length": "9" }).end("x", () => response.destroy());
  else if (request.url === "/empty") response.writeHead(204).end();
  else response.writeHead(200, { "content-type": "application/json", "set-cookie": "a=b" }).end('{"a":1}');
});
const { host, port, origin } = new URL(app.url);
const names = await startNameServer();

const allowed = new Set([host]);
const fetch = createGuardedFetch({ allowed, userAgent: "test" });

test.serial("a host that the operator exempts may be private and use http", async (t) => {
  const response = await fetch(`${origin}/document`);
  t.is(response.status, 200);
  t.deepEqual(await response.json(), { a: 1 });
  t.is(response.headers.get("content-type"), "application/json");
  t.is(response.headers.get("set-cookie"), null);
});

test.serial("a redirect is not followed, and a status without a body is no document", async (t) => {
  requests.length = 0;
  t.is((await fetch(`${origin}/redirect`)).status, 302);
  t.deepEqual(requests, ["GET /redirect"]);
  t.is((await fetch(`${origin}/empty`)).status, 502);
});

test.serial("a response that is too large or ends early, and a refused connection, are errors", async (t) => {
  const message = /larger than 65536 bytes/;
  await t.throwsAsync(fetch(`${origin}/large`), { instanceOf: FetchFailed, message });
  await t.throwsAsync(fetch(`${origin}/cut`), { instanceOf: FetchFailed, message: /incomplete|failed/ });
  const closed = createGuardedFetch({ allowed: new Set(["127.0.0.1"]), userAgent: "test" });
  const failed = { instanceOf: FetchFailed, message: "the request failed" };
  await t.throwsAsync(closed("http://127.0.0.1:1/"), failed);
});

test.serial("nothing is sent to a hostname that resolves to a private address", async (t) => {
  const lookup: LookupFunction = (_hostname, _options, done) =>
    done(null, [{ address: "127.0.0.1", family: 4 }]);
  const guarded = createGuardedFetch({ allowed, userAgent: "test", lookup });
  tried.length = 0;
  await t.throwsAsync(guarded("https://private.example.com/"), { instanceOf: FetchFailed });
  t.deepEqual(tried, []);
});

/** The addresses that this process tried to connect to on a port of webhooks. */
const tried: string[] = [];
diagnostics.subscribe("net.client.socket", (message) => {
  const { socket } = message as { socket: Socket };
  socket.on("connectionAttempt", (ip: string, of: number) => {
    if (of === 443 || of === 8443) tried.push(ip);
  });
});

const lookup = createDnsLookup([names.address]);
const timeouts = { connectMs: 8_000, totalMs: 10_000 };
const send = createSend({ allowed, userAgent: "test", lookup, timeouts });
const errorAt = async (url: string) => (await send(url, {}, "{}", new AbortController().signal)).error;
// Neither allocated nor reserved: the former IPv6 test network (6bone).
const UNALLOCATED = "3ffe::1";

test.serial("no event is sent to a hostname with a private address in DNS, of either type", async (t) => {
  for (const [name, ...addresses] of [
    ["v4", "169.254.169.254"],
    ["v6", "fd00::1"],
    ["both", "127.0.0.1", UNALLOCATED],
  ] as const) {
    const host = `${name}.example.com`;
    names.resolve(host, [...addresses]);
    tried.length = 0;
    t.is(await errorAt(`https://${host}/hook`), NOT_PUBLIC);
    t.deepEqual(tried, []);
    t.deepEqual(names.asked(host).sort(), ["A", "AAAA"]);
  }
});

test.serial("each attempt resolves its hostname once, and connects to the checked address", async (t) => {
  const host = "rebinding.example.com";
  names.resolve(host, [UNALLOCATED], ["127.0.0.1", "::1"]);
  tried.length = 0;
  const error = await errorAt(`https://${host}:8443/hook`);
  t.truthy(error);
  t.not(error, NOT_PUBLIC);
  t.deepEqual(names.asked(host).sort(), ["A", "AAAA"]);
  t.is(await errorAt(`https://${host}:8443/again`), NOT_PUBLIC);
  t.deepEqual(tried, [UNALLOCATED]);
});

test.serial("an endpoint on an allowed host is reachable by no other name", async (t) => {
  names.resolve("alias.example.com", ["127.0.0.1"]);
  requests.length = 0;
  t.is(await errorAt("https://alias.example.com/alias"), NOT_PUBLIC);
  t.is(
    await errorAt(`http://localhost:${port}/alias`),
    `The URL must be an https URL; to use a local endpoint, start the server with WEBHOOK_ALLOW_HOSTS=localhost:${port}.`,
  );
  t.is(await errorAt(`${origin}/allowed`), undefined);
  t.deepEqual(requests, ["POST /allowed"]);
});

test.serial("the error of a hostname that doesn't exist, or has no address, says so", async (t) => {
  names.resolve("empty.example.com", []);
  for (const name of ["unknown", "empty"])
    t.is(await errorAt(`https://${name}.example.com/hook`), "The hostname does not exist.");
});
