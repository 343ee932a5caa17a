import { once } from "node:events";
import http from "node:http";
import type { AddressInfo, LookupFunction } from "node:net";
import test from "ava";
import { createGuardedFetch, FetchFailed } from "../../../resources/outbound/guarded-fetch.ts";

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
const { port } = server.address() as AddressInfo;
const origin = `http://127.0.0.1:${port}`;
test.after.always(() => server.close());

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
