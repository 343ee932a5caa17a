import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

const ALLOWED = ["https://app.example.com", "http://localhost:5173"];
const service = await startTestService({ ALLOWED_ORIGINS: ALLOWED.join(", ") });
const api = apiAt(service.url, await service.token(await service.createOrganization()));
const anonymous = apiAt(service.url);
test.after.always(() => service.close());

const own = service.url;
const foreign = [
  "null",
  "https://evil.example",
  "https://app.example.com.evil.example",
  "https://evilapp.example.com",
  "http://app.example.com",
  "https://app.example.com:8443",
  "https://app.example.com/",
  "HTTPS://APP.EXAMPLE.COM",
  "https://user@app.example.com",
  own.replace("localhost", "127.0.0.1"),
  own.replace("http:", "https:"),
  "*",
  "file://",
  `${ALLOWED[0]} ${ALLOWED[1]}`,
];
const MCP = { json: { jsonrpc: "2.0", id: 1, method: "ping" } };
const calls: [name: string, send: (headers: Record<string, string>) => ReturnType<typeof api.send>][] = [
  ["a response of the API", (headers) => api.send("GET", "/v1/links", { headers })],
  ["an error of the API", (headers) => anonymous.send("GET", "/v1/links", { headers })],
  ["an unknown URL of the API", (headers) => api.send("GET", "/v1/nothing", { headers })],
  ["a response of MCP", (headers) => api.send("POST", "/mcp", { ...MCP, headers })],
  ["an error of MCP", (headers) => anonymous.send("POST", "/mcp", { ...MCP, headers })],
];

for (const [name, send] of calls) {
  for (const origin of [...ALLOWED, own]) {
    test(`${name} can be read from ${origin.replace(own, "the service's own origin")}`, async (t) => {
      const { headers } = await send({ origin });
      t.is(headers.get("access-control-allow-origin"), origin);
      t.false(headers.has("access-control-allow-credentials"));
      t.regex(headers.get("vary") ?? "", /\borigin\b/i);
      const exposed = headers.get("access-control-expose-headers")?.toLowerCase().split(/, */) ?? [];
      for (const header of [
        "etag",
        "location",
        "www-authenticate",
        "dpop-nonce",
        "retry-after",
        "x-request-id",
      ]) {
        t.true(exposed.includes(header), header);
      }
    });
  }
  for (const origin of foreign) {
    test(`${name} cannot be read from ${origin.replace(new URL(own).port, "port")}`, async (t) => {
      const { headers } = await send({ origin });
      t.false(headers.has("access-control-allow-origin"));
      t.false(headers.has("access-control-allow-credentials"));
      t.regex(headers.get("vary") ?? "", /\borigin\b/i);
    });
  }
}

test("a response without a request Origin allows no origin", async (t) => {
  const { status, headers } = await api.get("/v1/links");
  t.is(status, 200);
  t.false(headers.has("access-control-allow-origin"));
});

for (const path of ["/v1/links", "/v1/links/lnk_x", "/mcp"]) {
  const preflight = (origin: string, method: string) =>
    anonymous.send("OPTIONS", path, {
      headers: {
        origin,
        "access-control-request-method": method,
        "access-control-request-headers": "authorization,content-type,if-match,mcp-protocol-version",
      },
    });
  for (const origin of [...ALLOWED, own]) {
    test(`a preflight of ${path} from ${origin.replace(own, "the service's own origin")} is allowed without a token`, async (t) => {
      for (const method of ["GET", "POST", "PATCH", "DELETE"]) {
        const { status, headers, text } = await preflight(origin, method);
        t.is(status, 204);
        t.is(text, "");
        t.is(headers.get("access-control-allow-origin"), origin);
        t.true(headers.get("access-control-allow-methods")?.split(/, */).includes(method));
        t.regex(headers.get("access-control-allow-headers") ?? "", /authorization.*content-type.*if-match/);
        t.false(headers.has("access-control-allow-credentials"));
      }
    });
  }
  for (const origin of foreign) {
    test(`a preflight of ${path} from ${origin.replace(new URL(own).port, "port")} is not allowed`, async (t) => {
      const { headers } = await preflight(origin, "POST");
      t.false([...headers.keys()].some((header) => header.startsWith("access-control-")));
    });
  }
}

test("short links work from every origin and can be read from none", async (t) => {
  const { slug } = await api.createLink();
  for (const origin of [...ALLOWED, own, "https://evil.example", "null"]) {
    const { status, headers } = await anonymous.get(`/${slug}`, { origin });
    t.is(status, 302);
    t.false(headers.has("access-control-allow-origin"));
  }
});
