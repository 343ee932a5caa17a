import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { linkFields } from "../../harness/database/storage.ts";
import { BASE, createSites, HOST, request, send } from "../../harness/site.ts";

const { storage, serve, close } = await createSites();
const { organization } = await storage.organizations.create("Raw", "growth", OPERATOR);
await storage.links.create(organization.id, OPERATOR, linkFields({ slug: "Per-Cent_1" }));
const { port, logged } = await serve();
test.after.always(close);

/** A path of each part of the service, and the method of an ordinary request. */
const PARTS: [path: string, method?: string][] = [
  ["/Per-Cent_1"],
  ["/"],
  ["/docs"],
  ["/healthz"],
  ["/robots.txt"],
  ["/assets/style.css"],
  ["/auth/login"],
  ["/dashboard"],
  ["/interaction/x"],
  ["/auth/reset-password/x"],
  ["/oauth/authorize"],
  ["/oauth/token", "POST"],
  ["/oauth/jwks"],
  ["/.well-known/oauth-authorization-server"],
  ["/v1/links", "POST"],
  ["/v1/openapi.json"],
  ["/mcp", "POST"],
];

const CLOSE = "Connection: close";
const statusOf = (response: string) => Number(/^HTTP\/1\.1 (\d+) /.exec(response)?.[1]);
const headerOf = (response: string, name: string) =>
  new RegExp(`^${name}: (.*?)\r?$`, "im").exec(response)?.[1];
const bodyOf = (response: string) => response.slice(response.indexOf("\r\n\r\n") + 4);
const typeOf = (path: string) =>
  path.startsWith("/oauth/") ? "application/json" : "application/problem+json";

for (const [path, method = "GET"] of PARTS) {
  test(`${method} ${path} with two Host headers is refused with 400`, async (t) => {
    for (const second of [HOST, "host: other.example.com"]) {
      const response = await send(port, request(method, path, HOST, second, "Content-Length: 0", CLOSE));
      t.is(statusOf(response), 400, response);
      t.true(headerOf(response, "Content-Type")?.startsWith(typeOf(path)));
    }
  });

  test(`${method} ${path} is served for every spelling of the host, which no response repeats`, async (t) => {
    const ask = (host: string) =>
      send(port, request(method, path, `Host: ${host}`, "Content-Length: 0", CLOSE));
    const expected = statusOf(await ask("links.example.com"));
    for (const host of ["LINKS.example.com", "links.example.com:443", "Links.Example.com.:443"]) {
      const response = await ask(host);
      t.is(statusOf(response), expected, response);
      t.false(response.includes(host), response);
    }
    t.is(statusOf(await ask("links.example.com:")), expected);
    if (path === "/healthz") return;
    for (const host of [
      "links.example.com:80",
      "links.example.com:8443",
      "x@links.example.com",
      "links.example.com.evil.test",
    ]) {
      const response = await ask(host);
      t.is(statusOf(response), 421, response);
      t.false(response.includes(host));
    }
  });

  test(`${method} ${path} in absolute form is served for its own host only`, async (t) => {
    const expected = statusOf(await send(port, request(method, path, HOST, "Content-Length: 0", CLOSE)));
    for (const origin of [BASE, "http://LINKS.example.com", "https://links.example.com.:443"]) {
      const response = await send(port, request(method, origin + path, HOST, "Content-Length: 0", CLOSE));
      t.is(statusOf(response), expected, response);
    }
    if (path === "/healthz") return;
    for (const origin of ["http://other.example.com", "https://user@links.example.com"]) {
      const response = await send(port, request(method, origin + path, HOST, "Content-Length: 0", CLOSE));
      t.is(statusOf(response), 421, response);
    }
  });

  test(`POST ${path} with another transfer coding than chunked is refused with 501`, async (t) => {
    for (const coding of ["gzip, chunked", "identity, chunked"]) {
      const head = request("POST", path, HOST, `Transfer-Encoding: ${coding}`, CLOSE);
      const response = await send(port, `${head}0\r\n\r\n`);
      t.is(statusOf(response), 501, response);
      t.is(headerOf(response, "Connection"), "close");
    }
  });
}

const READ = ["GET", "HEAD", "OPTIONS"];
const ALLOWED: Record<string, string[]> = {
  "/Per-Cent_1": READ,
  "/": READ,
  "/docs": READ,
  "/healthz": READ,
  "/readyz": READ,
  "/metrics": READ,
  "/robots.txt": READ,
  "/favicon.ico": READ,
  "/assets/style.css": READ,
  "/auth/login": [...READ, "POST"],
  "/interaction/x": READ,
  "/interaction/x/consent": [...READ, "POST"],
  "/auth/reset-password/x": [...READ, "POST"],
  "/oauth/authorize": [...READ, "POST"],
  "/oauth/authorize/x": READ,
  "/oauth/token": ["POST", "OPTIONS"],
  "/oauth/jwks": READ,
  "/oauth/userinfo": [...READ, "POST"],
  "/v1/links": [...READ, "POST"],
};

for (const [path, allowed] of Object.entries(ALLOWED)) {
  test(`${path} supports the methods that its Allow lists`, async (t) => {
    const put = await send(port, request("PUT", path, HOST, CLOSE));
    t.is(statusOf(put), 405, put);
    t.deepEqual(headerOf(put, "Allow")?.split(", ").sort(), [...allowed].sort());
    t.true(headerOf(put, "Content-Type")?.startsWith(typeOf(path)));
    const options = await send(port, request("OPTIONS", path, HOST, CLOSE));
    t.is(statusOf(options), 204, options);
    t.is(headerOf(options, "Allow"), headerOf(put, "Allow"));
    if (!allowed.includes("HEAD")) return;
    const get = await send(port, request("GET", path, HOST, CLOSE));
    const head = await send(port, request("HEAD", path, HOST, CLOSE));
    t.is(statusOf(head), statusOf(get), head);
    t.is(bodyOf(head), "");
  });
}

test("a percent-encoded unreserved character of a slug is that character, and paths are exact", async (t) => {
  for (const path of ["/Per%2DCent_1", "/Per%2dCent%5f1", "/%50er-Cent_%31?utm=%2D"]) {
    t.is(
      headerOf(await send(port, request("GET", path, HOST, CLOSE)), "Location"),
      "https://example.com/",
      path,
    );
  }
  for (const [path, status] of Object.entries({
    "/v1/%6Cinks": 404,
    "/%64ocs": 200,
    "/%6Fauth/token": 404,
    "/Per%252DCent_1": 404,
    "/oauth%2Ftoken": 404,
    "/v1%2flinks": 404,
  })) {
    t.is(statusOf(await send(port, request("GET", path, HOST, CLOSE))), status, path);
  }
});

for (const [path, part] of [
  ["/v1/none", "the API"],
  ["/a/b", "no part"],
  ["/auth/none", "the pages"],
  ["/.well-known/none", "the metadata"],
]) {
  test(`an unknown path of ${part} is a complete problem`, async (t) => {
    const response = await send(port, request("GET", path as string, HOST, CLOSE));
    t.is(statusOf(response), 404);
    t.is(headerOf(response, "Content-Type"), "application/problem+json");
    const { type, title, status, code, request_id } = JSON.parse(bodyOf(response));
    t.deepEqual(
      { type, title, status, code },
      { type: `${BASE}/docs/errors/not_found`, title: "Not Found", status: 404, code: "not_found" },
    );
    t.truthy(request_id);
  });
}

test("a foreign host gets a problem from the API, also in a browser, and JSON as RFC 6749 describes from OAuth", async (t) => {
  const ask = (path: string) =>
    send(port, request("GET", path, "Host: other.example.com", "Accept: text/html", CLOSE));
  for (const path of ["/v1/links", "/mcp"]) {
    const response = await ask(path);
    t.is(statusOf(response), 421);
    t.is(headerOf(response, "Content-Type"), "application/problem+json");
    t.is(JSON.parse(bodyOf(response)).code, "misdirected_request");
  }
  t.is(JSON.parse(bodyOf(await ask("/oauth/token"))).error, "misdirected_request");
  t.regex(await ask("/docs"), /Wrong address/);
});

const FORM = "Content-Type: application/x-www-form-urlencoded";
const ORIGIN = `Origin: ${BASE}`;

for (const path of [
  "/oauth/authorize",
  "/auth/login",
  "/interaction/x/sign-in",
  "/interaction/x/account",
  "/interaction/x/consent",
  "/auth/reset-password/x",
]) {
  test(`POST ${path} with an unknown Content-Encoding is 415, and with a broken one 400`, async (t) => {
    const post = (encoding: string) =>
      send(
        port,
        `${request("POST", path, HOST, ORIGIN, FORM, `Content-Encoding: ${encoding}`, "Content-Length: 3", CLOSE)}a=b`,
      );
    t.is(statusOf(await post("nonsense")), 415);
    t.is(statusOf(await post("gzip")), 400);
  });
}

for (const path of ["/", "/docs", "/auth/login", "/auth/register", "/oauth/token", "/v1/links", "/mcp"]) {
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
}

/** Sends bytes, and returns all that comes back until the server closes the connection. */
async function sendOnly(bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(bytes);
  return text(socket).catch(() => "");
}

/** Closes the connection in the middle of a body, once the server has read what came before. */
async function sendHalf(bytes: string): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  socket.end(bytes);
  await once(socket.resume(), "close");
}
