import test from "ava";
import { apiAt, isInvalid, isProblem } from "../../harness/clients/api.ts";
import { shareApi, tokensFor } from "../../harness/clients/authorization.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { freePort } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";

const { service, app, anonymous: api } = await shareApi();

// One server with two host names: the service is on localhost, MCP and short links are on 127.0.0.1.
const port = await freePort();
const other = `http://127.0.0.1:${port}`;
const apart = await startTestService({
  PORT: String(port),
  MCP_URL: `${other}/agents/mcp`,
  SHORT_URL: other,
});
const apartToken = await apart.token(await apart.createOrganization());

const user = await service.createUser([app.id]);

const { url } = service;
const WELL_KNOWN = "/.well-known/oauth-protected-resource";

const ALL = ["links:read", "links:write", "domains:read", "domains:write", "webhooks:read", "webhooks:write"];
const READ = ALL.filter((scope) => scope.endsWith(":read"));
const documents: [path: string, resource: string, scopes: string[]][] = [
  [WELL_KNOWN, url, ALL],
  [`${WELL_KNOWN}/v1`, `${url}/v1`, ALL],
  [`${WELL_KNOWN}/mcp`, `${url}/mcp`, ["links:read", "links:write"]],
  [`${WELL_KNOWN}/mcp/`, `${url}/mcp/`, ["links:read", "links:write"]],
  [`${WELL_KNOWN}/mcp/read`, `${url}/mcp/read`, READ],
  [`${WELL_KNOWN}/mcp/read/`, `${url}/mcp/read/`, READ],
];

for (const [path, resource, scopes] of documents)
  test(`${path} describes the resource whose URL it is derived from, to any browser application`, async (t) => {
    const origin = "https://inspector.example.com";
    const { status, headers, body } = await api.get<Record<string, unknown>>(path, { origin });
    t.is(status, 200);
    t.regex(headers.get("content-type") ?? "", /^application\/json\b/);
    t.is(body.resource, resource);
    const { origin: at, pathname } = new URL(body.resource as string);
    t.is(at + WELL_KNOWN + (pathname === "/" ? "" : pathname), url + path);
    t.deepEqual(body.authorization_servers, [url]);
    t.deepEqual(body.bearer_methods_supported, ["header"]);
    t.is(typeof body.resource_name, "string");
    for (const [name, value] of Object.entries(body)) {
      t.true(value !== null && value !== "", name);
      if (Array.isArray(value)) t.true(value.length > 0, name);
    }
    t.deepEqual(body.scopes_supported, scopes, "without offline_access");

    const needed = "mcp-protocol-version";
    const asked = { "access-control-request-method": "GET", "access-control-request-headers": needed };
    const preflight = await api.send("OPTIONS", path, { headers: { origin, ...asked } });
    t.is(preflight.status, 204);
    t.is(preflight.headers.get("access-control-allow-headers"), needed);
    for (const answer of [headers, preflight.headers]) {
      t.is(answer.get("access-control-allow-origin"), "*");
      t.false(answer.has("access-control-allow-credentials"));
    }
    const head = await api.send("HEAD", path);
    t.deepEqual([head.status, head.text], [200, ""]);
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      const { status } = await api.send(method, path);
      t.true(status === 404 || status === 405, `${method} ${status}`);
    }
  });

test("no other resource has metadata", async (t) => {
  for (const path of ["/", "/v1/", "/v1/links", "/V1", "/other"])
    t.is((await api.get(WELL_KNOWN + path)).status, 404, path);
});

for (const [method, path, resource, scope] of [
  ["GET", "/v1/links", "/v1", "links:read"],
  ["POST", "/mcp", "/mcp", "links:read links:write"],
  ["POST", "/mcp/", "/mcp/", "links:read links:write"],
  ["POST", "/mcp/read", "/mcp/read", READ.join(" ")],
  ["POST", "/mcp/read/", "/mcp/read/", READ.join(" ")],
] as const)
  test(`the challenge of ${path} names its resource's metadata, also to a token for another resource`, async (t) => {
    const elsewhere = url + (resource === "/v1" ? "/mcp" : "/v1");
    const foreign = await service.token(app, { resource: elsewhere });
    const refused = await apiAt(url, foreign).send(method, path);
    isProblem(t, refused, { status: 401, code: "invalid_token" });
    t.is(challengeOf(refused)?.error, "invalid_token");
    for (const reply of [refused, await api.send(method, path)]) {
      const { resource_metadata = "", scope: asked } = challengeOf(reply) ?? {};
      const body = (await (await fetch(resource_metadata)).json()) as { resource: string };
      t.deepEqual([body.resource, asked], [url + resource, scope]);
    }
  });

const ping = { jsonrpc: "2.0", id: 1, method: "ping" };

test("MCP is served at MCP_URL and nowhere else", async (t) => {
  for (const [origin, path, status] of [
    [other, "/agents/mcp", 200],
    [other, "/agents/mcp/read", 200],
    [apart.url, "/agents/mcp/read", 404],
    [apart.url, "/agents/mcp", 404],
    [apart.url, "/mcp", 404],
    // A path of this service, on another host.
    [other, "/mcp", 421],
  ] as const)
    t.is((await apiAt(origin, apartToken).send("POST", path, { json: ping })).status, status, origin + path);
  for (const wrong of [`${apart.url}${WELL_KNOWN}/agents/mcp`, `${apart.url}${WELL_KNOWN}/mcp`])
    t.is((await fetch(wrong)).status, 404, wrong);
  t.is((await fetch(`${other}${WELL_KNOWN}/mcp`)).status, 404);
});

test("a link has SHORT_URL, leads to none of the hosts, and its slug isn't the first segment of MCP_URL", async (t) => {
  const apartApi = apiAt(apart.url, apartToken);
  for (const url of [`${other}/x`, `${apart.url}/x`]) {
    const reply = await apartApi.send("POST", "/v1/links", { json: { url } });
    isInvalid(t, reply, "url");
  }
  const { slug, short_url } = await apartApi.createLink();
  t.is(short_url, `${other}/${slug}`);
  const json = { url: "https://example.com", slug: "agents" };
  const reply = await apartApi.send("POST", "/v1/links", { json });
  isInvalid(t, reply, "slug");
});

type Parameters = Record<string, string>;
const asScript = (parameters: Parameters) => service.token(app, parameters);
const asUser = async (parameters: Parameters) =>
  (await tokensFor(service, app, user, { parameters })).access_token;

async function acceptedBy(token: string): Promise<string[]> {
  const api = apiAt(url, token);
  const json = { ...ping, method: "tools/list" };
  const headers = { accept: "application/json, text/event-stream" };
  const statuses = {
    "the API": (await api.get("/v1/links")).status,
    MCP: (await api.send("POST", "/mcp", { json, headers })).status,
    "read-only MCP": (await api.send("POST", "/mcp/read", { json, headers })).status,
  };
  return Object.entries(statuses).flatMap(([name, status]) => (status === 200 ? [name] : []));
}

const EVERYTHING = ["the API", "MCP", "read-only MCP"];
const table: [name: string, parameters: Parameters, accepting: string[]][] = [
  ["no resource", {}, EVERYTHING],
  ["the base URL", { resource: url }, EVERYTHING],
  ["the API", { resource: `${url}/v1` }, ["the API"]],
  ["MCP", { resource: `${url}/mcp` }, ["MCP", "read-only MCP"]],
  ["MCP in upper case, with a slash", { resource: `${url.toUpperCase()}/mcp/` }, ["MCP", "read-only MCP"]],
  ["read-only MCP", { resource: `${url}/mcp/read` }, ["read-only MCP"]],
];
for (const [who, issue, rows] of [
  ["a script", asScript, table],
  // The codes and tokens of users are for the same resources: one of each kind.
  ["a user", asUser, table.filter(([name]) => name === "no resource" || EVERYTHING.includes(name))],
] as const)
  for (const [name, parameters, accepting] of rows)
    test(`${who} with a token for ${name} can use ${accepting.join(" and ")}`, async (t) => {
      t.deepEqual(await acceptedBy(await issue(parameters)), accepting);
    });
