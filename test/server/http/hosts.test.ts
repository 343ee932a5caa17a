import { connect } from "node:net";
import test from "ava";
import { sendRaw } from "../../harness/clients/raw.ts";
import { freePort } from "../../harness/port.ts";
import { bearer, startTestService } from "../../harness/service.ts";

// The three addresses of a service may have hosts of their own, which are usually one machine.
const port = await freePort();
const service = await startTestService({
  PORT: String(port),
  BASE_URL: `http://localhost:${port}`,
  SHORT_URL: `http://127.0.0.1:${port}`,
  MCP_URL: `http://[::1]:${port}/mcp`,
});

test.after.always(() => service.close());

const { base, short, mcp } = service.urls;
const send = (origin: string, path: string, method = "GET") =>
  sendRaw(base, path, { method, headers: ["host", new URL(origin).host] });

const BASE_ONLY: [method: string, path: string][] = [
  ["GET", "/auth/login"],
  ["POST", "/auth/login"],
  ["POST", "/auth/register"],
  ["GET", "/auth/sso"],
  ["GET", "/dashboard"],
  ["GET", "/dashboard/me"],
  ["GET", "/interaction/x"],
  ["GET", "/oauth/authorize"],
  ["POST", "/oauth/token"],
  ["POST", "/oauth/revoke"],
  ["POST", "/oauth/introspect"],
  ["GET", "/oauth/jwks"],
  ["GET", "/v1/links"],
  ["GET", "/docs"],
  ["GET", "/login"],
  ["GET", "/LOGIN"],
];

for (const [name, origin] of Object.entries({ SHORT_URL: short, MCP_URL: mcp })) {
  test(`nothing of BASE_URL is served on the host of ${name}`, async (t) => {
    for (const [method, path] of BASE_ONLY) {
      const { status, text, headers } = await send(origin, path, method);
      t.is(status, 421, `${method} ${path}`);
      t.is(JSON.parse(text).code ?? JSON.parse(text).error, "misdirected_request", path);
      t.is(headers["set-cookie"], undefined, path);
    }
  });
}

test("short links are followed on the host of SHORT_URL and nowhere else", async (t) => {
  const token = await service.token(await service.createOrganization());
  const created = await fetch(`${base}/v1/links`, {
    method: "POST",
    headers: { ...bearer(token), "content-type": "application/json" },
    body: JSON.stringify({ url: "https://example.com/", slug: "here" }),
  });
  t.is(created.status, 201);
  t.is((await send(short, "/here")).status, 302);
  t.is((await send(short, "/nowhere")).status, 404);
  t.is((await send(base, "/here")).status, 404);
  t.is((await send(mcp, "/here")).status, 404);
});

test("the host of MCP_URL serves the MCP endpoint and its metadata", async (t) => {
  t.is((await send(mcp, "/mcp", "POST")).status, 401);
  t.is((await send(mcp, "/.well-known/oauth-protected-resource/mcp")).status, 200);
  t.is((await send(mcp, "/.well-known/oauth-authorization-server")).status, 200);
  t.is((await send(short, "/mcp", "POST")).status, 421);
  t.is((await send(short, "/.well-known/oauth-authorization-server")).status, 421);
});

test("every host serves its icon, its robots.txt and the health checks", async (t) => {
  for (const origin of [base, short, mcp]) {
    for (const path of ["/favicon.ico", "/robots.txt", "/healthz", "/readyz"]) {
      t.is((await send(origin, path)).status, 200, `${origin}${path}`);
    }
  }
});

/** Sends a request whose target is written as it is. Resolves to the head and the body of the response. */
function sendTarget(target: string, host: string, extra = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "localhost");
    let text = "";
    socket.on("data", (data) => {
      text += data;
    });
    socket.on("end", () => resolve(text));
    socket.on("error", reject);
    socket.write(
      `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\n${extra}Connection: close\r\n\r\n`,
    );
  });
}

// Each is served on the host of BASE_URL, or would be if it was normalized.
const SPELLINGS = [
  "/V1/links",
  "//v1/links",
  "/./v1/links",
  "/x/../v1/links",
  "/v1%2Flinks",
  "/%76%31/links",
  "/v1/links/",
  "/v1./links",
  "/v1;a/links",
  "/AUTH/login",
  "//auth/login",
  "/auth%2Flogin",
  "/%61uth/login",
  "/auth/login/",
  "/auth/./login",
  "\\auth\\login",
  "/Dashboard",
  "//dashboard",
  "/dashboard/",
  "/OAUTH/authorize",
  "//oauth/authorize",
  "/oauth%2Fauthorize",
  "/Oauth/Jwks",
  "/oauth/jwks/",
  "/%6Fauth/jwks",
  "/INTERACTION/x",
  "//interaction/x",
  "/.Well-Known/openid-configuration",
  "/.well-known/openid-configuration/",
  "//.well-known/openid-configuration",
  "/%2Ewell-known/openid-configuration",
  "/docs/",
  "/DOCS",
  "/mcp/",
  "/MCP",
  "/assets/../auth/login",
  "/assets/..%2Fauth/login",
  "/assets//auth/login",
];
/** What only responses of the service contain: its cookies, forms, documents and challenges. */
const OWN = /set-cookie|<form|"issuer"|"keys"|resource_metadata|location: \S*\/(auth|dashboard|docs)/i;

for (const [name, origin] of Object.entries({ SHORT_URL: short, MCP_URL: mcp })) {
  test(`no spelling of a path is served on the host of ${name}`, async (t) => {
    const { host } = new URL(origin);
    for (const path of SPELLINGS) {
      // The host of MCP_URL serves these.
      if (name === "MCP_URL" && /^\/(mcp|(\.|%2E)well-known)\//.test(path)) continue;
      for (const target of [path, `${origin.replace(/\/mcp$/, "")}${path}`, `${base}${path}`]) {
        const answer = await sendTarget(target, host);
        t.regex(answer, /^HTTP\/1\.1 (4\d\d|308) /, target);
        t.notRegex(answer, OWN, target);
      }
    }
  });
}

test("the name of a host counts in any case, with a final dot and with leading zeros of its port", async (t) => {
  for (const host of [`LOCALHOST:${port}`, `localhost.:${port}`, `LocalHost.:0${port}`]) {
    t.regex(await sendTarget("/auth/login", host), /^HTTP\/1\.1 200 /, host);
    t.regex(await sendTarget(`http://${host}/auth/login`, `localhost:${port}`), /^HTTP\/1\.1 200 /, host);
    t.regex(await sendTarget("/nowhere", host), /^HTTP\/1\.1 404 /, host);
  }
  t.regex(await sendTarget("/nowhere", `127.0.0.1.:${port}`), /^HTTP\/1\.1 404 /);
  t.regex(await sendTarget("/auth/login", `127.0.0.1.:${port}`), /^HTTP\/1\.1 421 /);
});

test("a host that isn't one of the service's is refused in every spelling", async (t) => {
  for (const host of [
    "evil.test",
    `localhost..:${port}`,
    `localhost:${port}.`,
    `localhost%2e:${port}`,
    "localhost",
    `user@localhost:${port}`,
    "",
  ]) {
    // The first path is refused by other checks as well; the others only because of the host.
    for (const path of ["/auth/login", "/", "/nowhere", "/robots.txt", "/assets/style.css"]) {
      const answer = await sendTarget(path, host);
      t.regex(answer, /^HTTP\/1\.1 (421|400) /, `${host} ${path}`);
      t.notRegex(answer, OWN, `${host} ${path}`);
    }
  }
});

test("an absolute request target doesn't choose the host", async (t) => {
  const { host } = new URL(short);
  t.regex(await sendTarget(`${base}/auth/login`, host), /^HTTP\/1\.1 4/);
  t.notRegex(await sendTarget(`http://evil.test/auth/login`, new URL(base).host), /evil/);
});
