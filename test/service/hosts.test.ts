import test from "ava";
import { apiAt } from "../harness/clients/api.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { freePort } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";
import { request, send as sendBytes } from "../harness/site.ts";

// The three addresses of a service may have hosts of their own, which are usually one machine.
const port = await freePort();
const service = await startTestService({
  PORT: String(port),
  BASE_URL: `http://localhost:${port}`,
  SHORT_URL: `http://127.0.0.1:${port}`,
  MCP_URL: `http://[::1]:${port}/mcp`,
});

const { base, short, mcp } = service.urls;
const send = (origin: string, path: string, method = "GET", accept = "*/*") =>
  sendRaw(base, path, { method, headers: ["host", new URL(origin).host, "accept", accept] });

const BASE_ONLY = {
  GET: [
    ...["/auth/login", "/auth/sso", "/dashboard", "/dashboard/me", "/interaction/x", "/oauth/authorize"],
    ...["/oauth/jwks", "/v1/links", "/docs", "/login", "/LOGIN"],
  ],
  POST: ["/auth/login", "/auth/register", "/oauth/token", "/oauth/revoke", "/oauth/introspect"],
};

const OTHERS = { SHORT_URL: short, MCP_URL: mcp };
for (const [name, origin] of Object.entries(OTHERS))
  test(`nothing of BASE_URL is served on the host of ${name}`, async (t) => {
    for (const [method, paths] of Object.entries(BASE_ONLY))
      for (const path of paths) {
        const accept = /^\/(v1|oauth\/token)/.test(path) ? "text/html" : "application/json";
        const { status, text, headers } = await send(origin, path, method, accept);
        t.is(status, 421, `${method} ${path}`);
        t.is(JSON.parse(text).code ?? JSON.parse(text).error, "misdirected_request", path);
        t.is(headers["set-cookie"], undefined, path);
      }
    t.regex((await send(origin, "/docs", "GET", "text/html")).text, /Wrong address/);
  });

test("each host serves what is its own, and all serve their icon, robots.txt and the health checks", async (t) => {
  await apiAt(base, await service.token(await service.createOrganization())).createLink({ slug: "here" });
  const metadata = "/.well-known/oauth-authorization-server";
  for (const [origin, path, status, method] of [
    [short, "/here", 302, "GET"],
    [short, "/nowhere", 404, "GET"],
    [short, "/", 404, "GET"],
    [base, "/here", 404, "GET"],
    [mcp, "/here", 404, "GET"],
    [mcp, "/mcp", 401, "POST"],
    [short, "/mcp", 421, "POST"],
    [mcp, "/.well-known/oauth-protected-resource/mcp", 200, "GET"],
    [mcp, metadata, 200, "GET"],
    [short, metadata, 421, "GET"],
    ...[base, short, mcp].flatMap((origin) =>
      ["/favicon.ico", "/robots.txt", "/healthz", "/readyz"].map(
        (path) => [origin, path, 200, "GET"] as const,
      ),
    ),
  ] as const)
    t.is((await send(origin, path, method)).status, status, `${method} ${origin} ${path}`);
  const [icon, asset] = [await send(short, "/favicon.ico"), await send(base, "/assets/icon.svg")];
  t.deepEqual([icon.headers["content-type"], icon.text], ["image/svg+xml", asset.text]);
});

test("the host of SHORT_URL redirects visitors of its root and of unknown links, if it has settings for them", async (t) => {
  const other = await freePort();
  const own = await startTestService({
    PORT: String(other),
    BASE_URL: `http://localhost:${other}`,
    SHORT_URL: `http://127.0.0.1:${other}`,
    SHORT_ROOT_REDIRECT_URL: "https://acme.example/",
    SHORT_NOT_FOUND_URL: "https://acme.example/not-found",
  });
  await apiAt(own.url, await own.token(await own.createOrganization())).createLink({ slug: "here" });
  const at = (origin: string, path: string, method = "GET") =>
    sendRaw(own.url, path, { method, headers: ["host", new URL(origin).host] });
  for (const [origin, path, status, location] of [
    [own.urls.short, "/", 302, "https://acme.example/"],
    [own.urls.short, "/nowhere", 302, "https://acme.example/not-found"],
    [own.urls.short, "/nowhere%2B", 302, "https://acme.example/not-found"],
    [own.urls.short, "/here", 302, "https://example.com/"],
    [own.urls.short, "/dashboard", 421, undefined],
    [own.urls.base, "/", 200, undefined],
    [own.urls.base, "/nowhere", 404, undefined],
  ] as const) {
    const { headers, ...reply } = await at(origin, path);
    t.deepEqual([reply.status, headers.location], [status, location], `${origin}${path}`);
  }
  t.is((await at(own.urls.short, "/", "POST")).status, 405);
  t.is((await at(short, "/")).status, 421, "another service's host");
});

// Each is served on the host of BASE_URL, or would be if it was normalized.
const SPELLINGS = [
  ...["/V1/links", "//v1/links", "/./v1/links", "/x/../v1/links", "/v1%2Flinks", "/%76%31/links"],
  ...["/v1/links/", "/v1./links", "/v1;a/links", "/AUTH/login", "//auth/login", "/auth%2Flogin"],
  ...["/%61uth/login", "/auth/login/", "/auth/./login", "\\auth\\login", "/Dashboard"],
  ...["//dashboard", "/dashboard/", "/OAUTH/authorize", "//oauth/authorize", "/oauth%2Fauthorize"],
  ...["/Oauth/Jwks", "/oauth/jwks/", "/%6Fauth/jwks", "/INTERACTION/x", "//interaction/x"],
  ...["/.Well-Known/", "//.well-known/", "/%2Ewell-known/"].map((path) => `${path}openid-configuration`),
  ...["/.well-known/openid-configuration/", "/docs/", "/DOCS", "/mcp/", "/MCP", "/assets/../auth/login"],
  ...["/assets/..%2Fauth/login", "/assets//auth/login"],
];
/** What only responses of the service contain: its cookies, forms, documents and challenges. */
const OWN = /set-cookie|<form|"issuer"|"keys"|resource_metadata|location: \S*\/(auth|dashboard|docs)/i;

for (const [name, origin] of Object.entries(OTHERS))
  test(`no spelling of a path is served on the host of ${name}, nor with an absolute target of BASE_URL`, async (t) => {
    const headers = [`Host: ${new URL(origin).host}`, "Accept: text/html", "Connection: close"];
    for (const path of ["/auth/login", ...SPELLINGS]) {
      // The host of MCP_URL serves these.
      if (name === "MCP_URL" && /^\/(mcp|(\.|%2E)well-known)\//.test(path)) continue;
      for (const target of [path, `${origin.replace(/\/mcp$/, "")}${path}`, `${base}${path}`]) {
        const answer = await sendBytes(port, request("GET", target, ...headers));
        t.regex(answer, /^HTTP\/1\.1 (4\d\d|308) /, target);
        t.notRegex(answer, OWN, target);
      }
    }
  });
