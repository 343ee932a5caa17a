import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { linkFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";
import { createFronts, HOST, request, send } from "../../harness/front.ts";

export const databases = "all";

const { storage, serve, close } = await createFronts();
const LOOKUP_MS = 100;

const { organization } = await storage.organizations.create("Front", "growth", OPERATOR);
const suspended = (await storage.organizations.create("Suspended", "growth", OPERATOR)).organization;

async function createLink(slug: string, changes: object = {}, organizationId = organization.id) {
  const link = await storage.links.create(organizationId, OPERATOR, linkFields({ slug, ...changes }));
  if ("taken" in link) throw new Error(`${slug} is taken`);
  return link;
}

const plain = await createLink("plain");
for (const redirectType of [301, 302, 307, 308]) await createLink(`type${redirectType}`, { redirectType });
await createLink("unicode", { url: "https://münchen.example/straße?q=ü#ß" });
await createLink("archived", { archived: true });
await createLink("expired", { expiresAt: 1 });
await createLink("expires", { expiresAt: Date.now() + 3_600_000 });
await createLink("limited", { maxClicks: 1000 });
await createLink("used-up", { maxClicks: 0 });
await createLink("moved", { archived: true, fallbackUrl: "https://example.com/sale-ended" });
await createLink("moved-used-up", { maxClicks: 0, fallbackUrl: "https://münchen.example/" });
await createLink("UPPER-case_1");
await storage.disabledLinks.disable((await createLink("disabled")).id, "spam", OPERATOR);
await storage.links.remove(organization.id, (await createLink("deleted")).id, OPERATOR);
await createLink("suspended", {}, suspended.id);
await storage.suspensions.suspend(suspended.id, null, OPERATOR);

test.after.always(close);

const get = (path: string, ...headers: string[]) => request("GET", path, HOST, ...headers);
const SLUGS =
  `plain type301 type302 type307 type308 unicode archived expired expires limited used-up UPPER-case_1
  disabled deleted suspended unknown upper-CASE_1 ${"x".repeat(64)} ${"x".repeat(65)} plain. plain/ plain/?utm=1 plain// pl%61in/ plain+ plain%2B plain%2b plain+/ archived+ archived/ moved moved/ moved+
  moved-used-up v1+ dashboard+ /plain plain%20 pl%61in
  plain? plain?utm=1 plain;x plain# v1 mcp oauth auth dashboard docs healthz readyz metrics assets login LOGIN register
  favicon.ico robots.txt .well-known interaction -`.split(/\s+/);
const METHODS = ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"];
const HTML = "Accept: text/html,application/xhtml+xml,*/*;q=0.8";

const HEADERS: Record<string, string> = {
  "a browser's": `GET /plain HTTP/1.1\r\n${HOST}\r\n${HTML}\r\nUser-Agent: Mozilla/5.0\r\nReferer: https://a.example/x\r\n\r\n`,
  "connection: close": get("/plain", "Connection: close"),
  "another Host": request("GET", "/plain", "Host: other.example.com"),
  "another Host, a browser": request("GET", "/plain", "Host: other.example.com", HTML),
  "upper-case Host": request("GET", "/plain", "Host: LINKS.example.com"),
  "Host with a port": request("GET", "/plain", "Host: links.example.com:443"),
  "Host with a final dot": request("GET", "/plain", "Host: links.example.com."),
  "an empty Host": request("GET", "/plain", "Host:"),
  "no Host": request("GET", "/plain"),
  "two Hosts": request("GET", "/plain", HOST, "Host: other.example.com"),
  "a forwarded host": get("/plain", "X-Forwarded-Host: other.example.com", "X-Forwarded-Proto: http"),
  "an absolute URL": get("http://links.example.com/plain"),
  "an absolute URL of another host": get("http://other.example.com/plain"),
  "a body": `${get("/plain", "Content-Length: 5").slice(0, -2)}\r\nhello`,
  "an empty body": get("/plain", "Content-Length: 0"),
  "a chunked body": `${get("/plain", "Transfer-Encoding: chunked")}5\r\nhello\r\n0\r\n\r\n`,
  "expect: 100-continue": get("/plain", "Expect: 100-continue"),
  "another expectation": get("/plain", "Expect: other"),
  "an upgrade": get("/plain", "Connection: Upgrade", "Upgrade: websocket"),
  "an upgrade to HTTP/2": get(
    "/plain",
    "Connection: Upgrade, HTTP2-Settings",
    "Upgrade: h2c",
    "HTTP2-Settings: AAM",
  ),
  "a condition": get("/plain", 'If-None-Match: "a"', "If-Modified-Since: Mon, 23 Nov 2026 00:00:00 GMT"),
  "a range": get("/plain", "Range: bytes=0-1"),
  "an origin": get("/plain", "Origin: https://a.example"),
  credentials: get("/plain", "Authorization: Bearer x", "Cookie: session=x"),
  "HTTP/1.0": `GET /plain HTTP/1.0\r\n${HOST}\r\n\r\n`,
  "HTTP/1.0, keep-alive": `GET /plain HTTP/1.0\r\n${HOST}\r\nConnection: keep-alive\r\n\r\n`,
  "HTTP/1.0 without a Host": "GET /plain HTTP/1.0\r\n\r\n",
  "HTTP/0.9": "GET /plain\r\n\r\n",
  "a malformed header": get("/plain", "No colon"),
  "three in a row": get("/plain") + get("/unknown") + get("/type307"),
  "two with a body between": `${get("/plain")}${request("POST", "/plain", HOST, "Content-Length: 2")}{}${get("/plain")}`,
};

const REQUESTS: Record<string, string> = {
  ...HEADERS,
  ...Object.fromEntries(SLUGS.map((slug) => [`GET /${slug.slice(0, 20)} ${slug.length}`, get(`/${slug}`)])),
  ...Object.fromEntries(
    SLUGS.map((slug) => [`page ${slug.slice(0, 20)} ${slug.length}`, get(`/${slug}`, HTML)]),
  ),
  ...Object.fromEntries(METHODS.map((method) => [`${method} /plain`, request(method, "/plain", HOST)])),
};

const clicksOf = async () => (await storage.links.find(organization.id, plain.id))?.clicks as number;

for (const [title, changes] of Object.entries({
  "one host": {},
  "a host for short links": { SHORT_URL: "https://links.example.com", BASE_URL: "https://app.example.com" },
  "behind a proxy": { TRUST_PROXY: "1" },
})) {
  test.serial(`the front and the application respond with the same bytes: ${title}`, async (t) => {
    const { front, behind } = await serve(changes);
    for (const [name, bytes] of Object.entries(REQUESTS)) {
      const before = await clicksOf();
      const expected = await send(behind, bytes);
      const between = await clicksOf();
      t.is(await send(front, bytes), expected, name);
      t.is((await clicksOf()) - between, between - before, `clicks of ${name}`);
    }
  });
}

test.serial("an ordinary redirect doesn't reach the application, and is part of the metrics", async (t) => {
  const { front, reached } = await serve();
  const response = await send(front, get("/plain"));
  t.is(reached(), 1, "the last request");
  t.deepEqual(response.split("\r\n\r\n")[0]?.split("\r\n"), [
    "HTTP/1.1 302 Found",
    "X-Request-Id: …",
    "X-Content-Type-Options: nosniff",
    "Strict-Transport-Security: max-age=63072000; includeSubDomains",
    "Location: https://example.com/",
    "Cache-Control: private, no-store",
    "X-Robots-Tag: noindex",
    "Content-Length: 0",
    "Date: …",
    "Connection: keep-alive",
    "Keep-Alive: timeout=1",
  ]);
  const metrics = await send(front, request("GET", "/metrics", "Host: localhost"));
  t.regex(metrics, /linkgate_http_requests_total\{method="GET",route="\/:slug",status="302"\} 1/);
});

test.serial("the duration of a request that fails in front includes its lookup", async (t) => {
  const slow = { ...storage, links: { ...storage.links, resolve: () => sleep(LOOKUP_MS, undefined) } };
  const { front } = await serve({}, slow);
  await send(front, get("/unknown"));
  const metrics = await send(front, request("GET", "/metrics", "Host: localhost"));
  const [, seconds] =
    /linkgate_http_request_duration_seconds_sum\{[^}]*route="\/:slug"[^}]*\} (\S+)/.exec(metrics) ?? [];
  // A timer may fire up to a millisecond early.
  t.true(Number(seconds) * 1000 > LOOKUP_MS - 2, metrics);
});

// On SQLite, a lookup reads the version of links, and the link itself unless it is cached.
const LOOKUP = engine === "sqlite" ? /link_changes/ : /slug/;

test.serial("a link that fails in front is looked up once", async (t) => {
  const { front } = await serve();
  for (const slug of ["unknown", "archived", "used-up"]) {
    const statements: string[] = [];
    const stop = storage.onStatement((sql) => statements.push(sql));
    await send(front, get(`/${slug}`));
    stop();
    t.is(statements.filter((sql) => LOOKUP.test(sql)).length, 1, slug);
  }
});
