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
      t.is(JSON.parse(text).error, "misdirected_request", path);
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
