import test from "ava";
import { shareApi } from "../../harness/clients/authorization.ts";

const ALLOWED = ["https://app.example.com", "http://localhost:5173"];
const { service, api, anonymous } = await shareApi({ ALLOWED_ORIGINS: ALLOWED.join(", ") });

const own = service.url;
const foreign = [
  ...["null", "https://evil.example", "*", "file://", `${ALLOWED[0]} ${ALLOWED[1]}`],
  ...["https://app.example.com.evil.example", "https://evilapp.example.com", "http://app.example.com"],
  ...["https://app.example.com:8443", "https://app.example.com/", "HTTPS://APP.EXAMPLE.COM"],
  ...["https://user@app.example.com", own.replace("localhost", "127.0.0.1"), own.replace("http:", "https:")],
];
const MCP = { json: { jsonrpc: "2.0", id: 1, method: "ping" } };
const calls: [name: string, send: (headers: Record<string, string>) => ReturnType<typeof api.send>][] = [
  ["a response of the API", (headers) => api.send("GET", "/v1/links", { headers })],
  ["an error of the API", (headers) => anonymous.send("GET", "/v1/links", { headers })],
  ["an unknown URL of the API", (headers) => api.send("GET", "/v1/nothing", { headers })],
  ["a response of MCP", (headers) => api.send("POST", "/mcp", { ...MCP, headers })],
  ["an error of MCP", (headers) => anonymous.send("POST", "/mcp", { ...MCP, headers })],
];

const EXPOSED = ["etag", "location", "www-authenticate", "dpop-nonce", "retry-after", "x-request-id"];

for (const [name, send] of calls)
  test(`${name} can be read from allowed origins and from no other, without credentials`, async (t) => {
    for (const origin of [...ALLOWED, own, ...foreign]) {
      const { headers } = await send({ origin });
      const isAllowed = !foreign.includes(origin);
      t.is(headers.get("access-control-allow-origin"), isAllowed ? origin : null, origin);
      t.false(headers.has("access-control-allow-credentials"), origin);
      t.regex(headers.get("vary") ?? "", /\borigin\b/i, origin);
      const exposed = headers.get("access-control-expose-headers")?.toLowerCase().split(/, */) ?? [];
      if (isAllowed) for (const header of EXPOSED) t.true(exposed.includes(header), header);
    }
    t.false((await send({})).headers.has("access-control-allow-origin"), "without an Origin");
  });

test("a preflight from an allowed origin needs no token, and from another one allows nothing", async (t) => {
  const needed = "authorization,content-type,if-match,mcp-protocol-version";
  for (const path of ["/v1/links", "/v1/links/lnk_x", "/mcp"]) {
    const preflight = (origin: string, method: string) => {
      const asked = { "access-control-request-method": method, "access-control-request-headers": needed };
      return anonymous.send("OPTIONS", path, { headers: { origin, ...asked } });
    };
    for (const origin of [...ALLOWED, own])
      for (const method of ["GET", "POST", "PATCH", "DELETE"]) {
        const { status, headers, text } = await preflight(origin, method);
        t.deepEqual([status, text], [204, ""]);
        t.is(headers.get("access-control-allow-origin"), origin);
        t.true(headers.get("access-control-allow-methods")?.split(/, */).includes(method));
        t.is(headers.get("access-control-allow-headers"), needed);
        t.false(headers.has("access-control-allow-credentials"));
      }
    for (const origin of foreign) {
      const { headers } = await preflight(origin, "POST");
      t.notRegex([...headers.keys()].join(), /access-control-/, origin);
    }
  }
});

test("short links work from every origin and can be read from none", async (t) => {
  const { slug } = await api.createLink();
  for (const origin of [...ALLOWED, own, "https://evil.example", "null"]) {
    const { status, headers } = await anonymous.get(`/${slug}`, { origin });
    t.is(status, 302);
    t.false(headers.has("access-control-allow-origin"));
  }
});
