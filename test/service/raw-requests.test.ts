import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import test from "ava";
import { sendRaw } from "../harness/clients/raw.ts";
import { linkFields, OPERATOR } from "../harness/database/storage.ts";
import { BASE, createSites, HOST, request, send } from "../harness/site.ts";
import { until } from "../harness/webhooks.ts";

const { storage, serve } = await createSites();
const { organization, client } = await storage.organizations.create("Raw", "growth", OPERATOR);
await storage.links.create(organization.id, OPERATOR, linkFields({ slug: "Per-Cent_1" }));
const { port, logged } = await serve();
const issued = await sendRaw(`http://127.0.0.1:${port}`, "/oauth/token", {
  method: "POST",
  headers: ["host", new URL(BASE).host, "content-type", "application/x-www-form-urlencoded"],
  body: `grant_type=client_credentials&client_id=${client?.clientId}&client_secret=${client?.clientSecret}`,
});

/** A path of each part of the service, by the method of an ordinary request. */
const PARTS = {
  GET: [
    ...["/Per-Cent_1", "/", "/docs", "/healthz", "/robots.txt", "/assets/style.css", "/auth/login"],
    ...["/dashboard", "/interaction/x", "/auth/reset-password/x", "/oauth/authorize", "/oauth/jwks"],
    ...["/.well-known/oauth-authorization-server", "/v1/openapi.json"],
  ],
  POST: ["/oauth/token", "/v1/links", "/mcp"],
};

const CLOSE = "Connection: close";
const ask = (method: string, path: string, ...headers: string[]) =>
  send(port, request(method, path, HOST, ...headers, CLOSE));
const statusOf = (response: string) => Number(/^HTTP\/1\.1 (\d+) /.exec(response)?.[1]);
const headerOf = (response: string, name: string) =>
  new RegExp(`^${name}: (.*?)\r?$`, "im").exec(response)?.[1];
const bodyOf = (response: string) => response.slice(response.indexOf("\r\n\r\n") + 4);
const typeOf = (path: string) =>
  path.startsWith("/oauth/") ? "application/json" : "application/problem+json";

const REQUESTS = Object.entries(PARTS).flatMap(([method, paths]) => paths.map((path) => ({ method, path })));
for (const { method, path } of REQUESTS) {
  test(`${method} ${path} with ambiguous framing is refused: two Host headers, or another transfer coding`, async (t) => {
    for (const second of [HOST, "host: other.example.com"]) {
      const response = await send(port, request(method, path, HOST, second, "Content-Length: 0", CLOSE));
      t.is(statusOf(response), 400, response);
      t.true(headerOf(response, "Content-Type")?.startsWith(typeOf(path)));
    }
    for (const coding of ["gzip, chunked", "identity, chunked"]) {
      const head = request("POST", path, HOST, `Transfer-Encoding: ${coding}`, CLOSE);
      const response = await send(port, `${head}0\r\n\r\n`);
      t.is(statusOf(response), 501, response);
      t.is(headerOf(response, "Connection"), "close");
    }
  });

  test(`${method} ${path} is served for every spelling of the own host, also in absolute form, and for no other`, async (t) => {
    const statusFor = async (host: string, origin = "") => {
      const sent = request(method, origin + path, `Host: ${host}`, "Content-Length: 0", CLOSE);
      const response = await send(port, sent);
      if (host !== "links.example.com") t.false(response.includes(host), "no response repeats the header");
      t.false(response.includes("other.example.com"), "nor the origin of the target");
      return statusOf(response);
    };
    const own = "links.example.com";
    const expected = await statusFor(own);
    for (const host of ["LINKS.example.com", "links.example.com:0443", "Links.Example.com.:443"])
      t.is(await statusFor(host), expected, host);
    for (const origin of [BASE, "http://LINKS.example.com", "https://links.example.com.:443"])
      t.is(await statusFor(own, origin), expected, origin);
    if (path === "/healthz") return;
    for (const host of [`${own}:80`, `${own}:8443`, `${own}..`, `${own}%2e`, `x@${own}`, `${own}.evil.test`])
      t.is(await statusFor(host), 421, host);
    for (const origin of ["http://other.example.com", "https://user@links.example.com"])
      t.is(await statusFor(own, origin), 421, origin);
  });
}

const READ = ["GET", "HEAD", "OPTIONS"];
const allow = (allowed: string[], ...paths: string[]) =>
  Object.fromEntries(paths.map((path) => [path, allowed]));
const ALLOWED: Record<string, string[]> = {
  ...allow(READ, "/Per-Cent_1", "/", "/docs", "/healthz", "/readyz", "/metrics", "/robots.txt"),
  ...allow(READ, "/favicon.ico", "/assets/style.css", "/interaction/x", "/oauth/authorize/x", "/oauth/jwks"),
  ...allow([...READ, "POST"], "/auth/login", "/interaction/x/consent", "/auth/reset-password/x"),
  ...allow([...READ, "POST"], "/oauth/authorize", "/oauth/userinfo", "/v1/links"),
  "/oauth/token": ["POST", "OPTIONS"],
};

for (const [path, allowed] of Object.entries(ALLOWED))
  test(`${path} supports the methods that its Allow lists`, async (t) => {
    const put = await ask("PUT", path);
    t.is(statusOf(put), 405, put);
    t.deepEqual(headerOf(put, "Allow")?.split(", ").sort(), [...allowed].sort());
    t.true(headerOf(put, "Content-Type")?.startsWith(typeOf(path)));
    const options = await ask("OPTIONS", path);
    t.is(statusOf(options), 204, options);
    t.is(headerOf(options, "Allow"), headerOf(put, "Allow"));
    if (!allowed.includes("HEAD")) return;
    const get = await ask("GET", path);
    const head = await ask("HEAD", path);
    t.is(statusOf(head), statusOf(get), head);
    t.is(bodyOf(head), "");
  });

test("a percent-encoded unreserved character of a slug is that character, and paths are exact", async (t) => {
  for (const path of ["/Per%2DCent_1", "/Per%2dCent%5f1", "/%50er-Cent_%31"])
    t.is(headerOf(await ask("GET", `${path}?utm=%2D`), "Location"), "https://example.com/?utm=%2D", path);
  const missing = ["/v1/%6Cinks", "/%6Fauth/token", "/Per%252DCent_1", "/oauth%2Ftoken", "/v1%2flinks"];
  t.is(statusOf(await ask("GET", "/%64ocs")), 200);
  for (const path of missing) t.is(statusOf(await ask("GET", path)), 404, path);
});

for (const path of ["/v1/none", "/a/b", "/auth/none", "/.well-known/none"])
  test(`the unknown path ${path} is a complete problem`, async (t) => {
    const response = await ask("GET", path);
    t.is(statusOf(response), 404);
    t.is(headerOf(response, "Content-Type"), "application/problem+json");
    const { request_id, ...problem } = JSON.parse(bodyOf(response));
    t.like(problem, { type: `${BASE}/docs/errors/not_found`, title: "Not Found" });
    t.like(problem, { status: 404, code: "not_found" });
    t.truthy(request_id);
  });

const FORM = "Content-Type: application/x-www-form-urlencoded";
const ORIGIN = `Origin: ${BASE}`;

const FORMS = [
  ...["/oauth/authorize", "/auth/login", "/auth/reset-password/x"],
  ...["/interaction/x/sign-in", "/interaction/x/account", "/interaction/x/consent"],
];
for (const path of FORMS)
  test(`POST ${path} with an unknown Content-Encoding is 415, and with a broken one 400`, async (t) => {
    const post = (encoding: string) => {
      const headers = [HOST, ORIGIN, FORM, `Content-Encoding: ${encoding}`, "Content-Length: 3", CLOSE];
      return send(port, `${request("POST", path, ...headers)}a=b`);
    };
    t.is(statusOf(await post("nonsense")), 415);
    t.is(statusOf(await post("gzip")), 400);
  });

for (const path of ["/", "/docs", "/auth/login", "/auth/register", "/oauth/token", "/v1/links", "/mcp"])
  test.serial(`what a client sends wrongly to ${path} is not logged as an error of the server`, async (t) => {
    const post = (...headers: string[]) =>
      request("POST", path, HOST, "Content-Type: application/json", ...headers);
    for (const bytes of [
      `${post("Content-Length: 2")}{}garbage\r\n\r\n`,
      `${request("GET", path, HOST)}\0garbage\r\n\r\n`,
      `${post("Transfer-Encoding: chunked")}2\r\n{}\r\nZZ\r\n`,
      `${post("Transfer-Encoding: chunked")}ZZ\r\n{}\r\n`,
    ]) {
      const response = await sendOnly(bytes);
      t.notRegex(response, /^HTTP\/1\.1 5/m, bytes);
      t.deepEqual(logged, [], bytes);
    }
    await sendHalf(`${post("Content-Length: 20")}{}`);
    t.deepEqual(logged, []);
  });

/** Sends bytes, and returns all that comes back until the server closes the connection. */
async function sendOnly(bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(bytes);
  return text(socket).catch(() => "");
}

/** Closes the connection in the middle of a body, once the server has read what came before. */
async function sendHalf(bytes: string, at = port): Promise<void> {
  const socket = connect(at, "127.0.0.1");
  socket.end(bytes);
  await once(socket.resume(), "close");
}

const metricsOf = (at: number) => send(at, request("GET", "/metrics", "Host: localhost"));

test("a request ends whose client disconnects while its token is looked up, or its body is read", async (t) => {
  const headers = [HOST, `Authorization: Bearer ${JSON.parse(issued.text).access_token}`];
  headers.push("Content-Type: application/json", "Content-Length: 30");
  const disconnected = Promise.withResolvers<void>();
  const findActiveToken: typeof storage.findActiveToken = async (token) => {
    await disconnected.promise;
    return storage.findActiveToken(token);
  };
  for (const served of [{ ...storage, findActiveToken }, storage]) {
    const { port: at } = await serve({}, served);
    await sendHalf(`${request("POST", "/v1/links", ...headers)}{"url":`, at);
    disconnected.resolve();
    const counted = /linkgate_http_requests_total\{method="POST",route="\/v1\/links",status="400"\} 1/;
    await t.notThrowsAsync(until(async () => counted.test(await metricsOf(at)) || undefined));
  }
});

test.serial("a redirect has these headers, and is part of the metrics", async (t) => {
  const { port: at } = await serve();
  const response = await send(at, request("GET", "/Per-Cent_1", HOST));
  t.deepEqual(response.split("\r\n\r\n")[0]?.split("\r\n"), [
    "HTTP/1.1 302 Found",
    "X-Request-Id: …",
    "X-Content-Type-Options: nosniff",
    "Strict-Transport-Security: max-age=63072000; includeSubDomains",
    "Cache-Control: private, no-store",
    "X-Robots-Tag: noindex",
    "Location: https://example.com/",
    "Content-Length: 0",
    "Date: …",
    "Connection: keep-alive",
    "Keep-Alive: timeout=1",
  ]);
  t.regex(await metricsOf(at), /linkgate_http_requests_total\{method="GET",route="\/:slug",status="302"\} 1/);
});
