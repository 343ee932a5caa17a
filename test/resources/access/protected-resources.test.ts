import test from "ava";
import { apiAt, isMissing, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { freePort } from "../../harness/port.ts";
import { bearer, startTestService, type TestOrganization } from "../../harness/service.ts";

const service = await startTestService();

// One server with two host names: the service is on localhost, MCP and short links are on 127.0.0.1.
const port = await freePort();
const other = `http://127.0.0.1:${port}`;
const apart = await startTestService({
  PORT: String(port),
  MCP_URL: `${other}/agents/mcp`,
  SHORT_URL: other,
});
const apartApp = await apart.createOrganization();
const apartApi = apiAt(apart.url, await apart.token(apartApp));

const app = await service.createOrganization();
const user = await service.createUser([app.id]);

test.after.always(() => service.close());
test.after.always(() => apart.close());

const { url } = service;
const api = apiAt(url);
const WELL_KNOWN = "/.well-known/oauth-protected-resource";

const ALL = ["links:read", "links:write", "webhooks:read", "webhooks:write"];
const documents: [path: string, resource: string, scopes: string[]][] = [
  [WELL_KNOWN, url, ALL],
  [`${WELL_KNOWN}/v1`, `${url}/v1`, ALL],
  [`${WELL_KNOWN}/mcp`, `${url}/mcp`, ["links:read", "links:write"]],
  [`${WELL_KNOWN}/mcp/`, `${url}/mcp/`, ["links:read", "links:write"]],
];

for (const [path, resource, scopes] of documents) {
  test(`${path} describes the resource whose URL it is derived from`, async (t) => {
    const { status, headers, body } = await api.get<Record<string, unknown>>(path);
    t.is(status, 200);
    t.regex(headers.get("content-type") ?? "", /^application\/json\b/);
    t.is(body.resource, resource);
    const { origin, pathname } = new URL(body.resource as string);
    t.is(origin + WELL_KNOWN + (pathname === "/" ? "" : pathname), url + path);
    t.deepEqual(body.authorization_servers, [url]);
    t.deepEqual(body.bearer_methods_supported, ["header"]);
    t.is(typeof body.resource_name, "string");
  });

  test(`${path} has neither empty lists nor members without a value`, async (t) => {
    const { body } = await api.get<Record<string, unknown>>(path);
    for (const [name, value] of Object.entries(body)) {
      t.true(value !== null && value !== "", name);
      if (Array.isArray(value)) t.true(value.length > 0, name);
    }
  });

  test(`${path} lists the scopes of the resource, and not offline_access`, async (t) => {
    const { body } = await api.get<{ scopes_supported: string[] }>(path);
    t.deepEqual(body.scopes_supported, scopes);
  });

  test(`${path} names an authorization server whose metadata has the same issuer`, async (t) => {
    const { body } = await api.get<{ authorization_servers: string[] }>(path);
    for (const issuer of body.authorization_servers) {
      const server = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
      t.is((server as { issuer: string }).issuer, issuer);
    }
  });

  test(`${path} can be read by any browser application, without credentials`, async (t) => {
    const origin = "https://inspector.example.com";
    const { status, headers } = await api.get(path, { origin });
    t.is(status, 200);
    t.is(headers.get("access-control-allow-origin"), "*");
    t.false(headers.has("access-control-allow-credentials"));
    const preflight = await api.send("OPTIONS", path, {
      headers: {
        origin,
        "access-control-request-method": "GET",
        "access-control-request-headers": "mcp-protocol-version",
      },
    });
    t.is(preflight.status, 204);
    t.is(preflight.headers.get("access-control-allow-origin"), "*");
    t.is(preflight.headers.get("access-control-allow-headers"), "mcp-protocol-version");
    t.false(preflight.headers.has("access-control-allow-credentials"));
  });

  test(`${path} answers HEAD without a body, and rejects methods that make changes`, async (t) => {
    const head = await api.send("HEAD", path);
    t.is(head.status, 200);
    t.is(head.text, "");
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      const { status } = await api.send(method, path);
      t.true(status === 404 || status === 405, `${method} ${status}`);
    }
  });
}

for (const path of [
  `${WELL_KNOWN}/`,
  `${WELL_KNOWN}/v1/`,
  `${WELL_KNOWN}/v1/links`,
  `${WELL_KNOWN}/V1`,
  `${WELL_KNOWN}/other`,
]) {
  test(`${path} is not found`, async (t) => {
    t.is((await api.get(path)).status, 404);
  });
}

for (const [path, resource] of [
  ["/v1/links", "/v1"],
  ["/v1/organization", "/v1"],
  ["/mcp", "/mcp"],
  ["/mcp/", "/mcp/"],
] as const) {
  test(`the challenge of ${path} names its resource's metadata`, async (t) => {
    const reply = path.startsWith("/mcp") ? await api.send("POST", path, { json: {} }) : await api.get(path);
    const metadataUrl = challengeOf(reply)?.resource_metadata ?? "";
    const body = (await (await fetch(metadataUrl)).json()) as { resource: string };
    t.is(body.resource, url + resource);
  });
}

const ping = { jsonrpc: "2.0", id: 1, method: "ping" };

test("MCP is served at MCP_URL and nowhere else", async (t) => {
  const token = await apart.token(apartApp);
  t.is(
    (await apiAt(other, token).send("POST", "/agents/mcp", { json: ping })).status,
    200,
    "accepted by the bearer check",
  );
  for (const [origin, path, status] of [
    [apart.url, "/agents/mcp", 404],
    [apart.url, "/mcp", 404],
    // Paths of this service, on another host.
    [other, "/mcp", 421],
    [other, "/agents", 421],
  ] as const) {
    t.is((await apiAt(origin, token).send("POST", path, { json: ping })).status, status, origin + path);
  }
});

test("the metadata of MCP is served at the well-known URL derived from MCP_URL", async (t) => {
  const metadataUrl = `${other}/.well-known/oauth-protected-resource/agents/mcp`;
  const challenge = challengeOf(await apiAt(other).send("POST", "/agents/mcp", { json: ping }));
  t.is(challenge?.resource_metadata, metadataUrl);
  const body = (await (await fetch(metadataUrl)).json()) as Record<string, unknown>;
  t.is(body.resource, `${other}/agents/mcp`);
  t.deepEqual(body.authorization_servers, [apart.url]);
  for (const wrong of [
    `${apart.url}/.well-known/oauth-protected-resource/agents/mcp`,
    `${apart.url}/.well-known/oauth-protected-resource/mcp`,
    `${other}/.well-known/oauth-protected-resource/mcp`,
  ]) {
    t.is((await fetch(wrong)).status, 404, wrong);
  }
});

test("a token for MCP_URL is accepted there and rejected by the API", async (t) => {
  const token = await apart.token(apartApp, { resource: `${other}/agents/mcp` });
  t.is(
    (await apiAt(other, token).send("POST", "/agents/mcp", { json: ping })).status,
    200,
    "accepted by the bearer check",
  );
  isProblem(t, await apiAt(apart.url, token).get("/v1/links"), { status: 401, code: "invalid_token" });
});

test("short links are served on SHORT_URL only", async (t) => {
  const { slug, short_url } = await apartApi.createLink();
  t.is(short_url, `${other}/${slug}`);
  t.is((await fetch(short_url, { redirect: "manual" })).status, 302);
  t.is((await fetch(`${apart.url}/${slug}`, { redirect: "manual" })).status, 404);
});

test("the API is not served on the other host", async (t) => {
  const token = await apart.token(apartApp);
  t.is((await fetch(`${other}/v1/links`, { headers: bearer(token) })).status, 421);
});

for (const url of [`${other}/x`, `${apart.url}/x`, `https://127.0.0.1:${port}/x`]) {
  test(`a link to ${url.replace(String(port), "port")} is rejected because it points to the service`, async (t) => {
    const reply = await apartApi.send("POST", "/v1/links", { json: { url } });
    isProblem(t, reply, { status: 422, code: "invalid_url", fields: ["url"] });
  });
}

test("the first path segment of MCP_URL is a reserved slug", async (t) => {
  const reply = await apartApi.send("POST", "/v1/links", {
    json: { url: "https://example.com", slug: "agents" },
  });
  isProblem(t, reply, { status: 422, code: "invalid_slug", fields: ["slug"] });
});

test("an unknown slug on SHORT_URL is a 404", async (t) => {
  isMissing(t, await apiAt(other).get("/nothing"));
});

const asScript = (resource?: string) => service.token(app, resource === undefined ? {} : { resource });
const asUser = async (resource?: string) =>
  (await tokensFor(service, app, user, { parameters: resource === undefined ? {} : { resource } }))
    .access_token;

/** Returns whether the API and MCP accept a token. */
async function acceptedBy(token: string): Promise<{ api: boolean; mcp: boolean }> {
  const api = apiAt(url, token);
  const mcp = await api.send("POST", "/mcp", {
    json: { jsonrpc: "2.0", id: 1, method: "tools/list" },
    headers: { accept: "application/json, text/event-stream" },
  });
  return { api: (await api.get("/v1/links")).status === 200, mcp: mcp.status === 200 };
}

const upper = url.toUpperCase();
const table: [name: string, resource: string | undefined, api: boolean, mcp: boolean][] = [
  ["no resource", undefined, true, true],
  ["the base URL", url, true, true],
  ["the base URL with a trailing slash", `${url}/`, true, true],
  ["the API", `${url}/v1`, true, false],
  ["the API with a trailing slash", `${url}/v1/`, true, false],
  ["MCP", `${url}/mcp`, false, true],
  ["MCP with a trailing slash", `${url}/mcp/`, false, true],
  ["MCP with an uppercase scheme and host", `${upper}/mcp`, false, true],
];
for (const [who, issue] of [
  ["a script", asScript],
  ["a user", asUser],
] as const) {
  for (const [name, resource, api, mcp] of table) {
    const accepting = [api && "the API", mcp && "MCP"].filter(Boolean).join(" and ");
    test(`${who} with a token for ${name} can use ${accepting}`, async (t) => {
      t.deepEqual(await acceptedBy(await issue(resource)), { api, mcp });
    });
  }
}

const MCP_CALL = { json: { jsonrpc: "2.0", id: 1, method: "tools/list" } };
const calls: [
  name: string,
  resource: string,
  method: string,
  path: string,
  options: object,
  scope: string,
][] = [
  ["a token for MCP at the API", `${url}/mcp`, "GET", "/v1/links", {}, "links:read"],
  ["a token for MCP at a write of the API", `${url}/mcp`, "POST", "/v1/links", { json: {} }, "links:write"],
  ["a token for the API at MCP", `${url}/v1`, "POST", "/mcp", MCP_CALL, "links:read links:write"],
];
for (const [name, resource, method, path, options, scope] of calls) {
  test(`${name} is rejected with invalid_token`, async (t) => {
    const reply = await apiAt(url, await service.token(app, { resource })).send(method, path, options);
    isProblem(t, reply, { status: 401, code: "invalid_token" });
    const { error, scope: offered, resource_metadata } = challengeOf(reply) ?? {};
    t.is(error, "invalid_token");
    t.is(offered, scope);
    const own = `${url}/.well-known/oauth-protected-resource/${path.split("/")[1]}`;
    t.is(resource_metadata, own);
  });
}

const unknown = [
  "https://example.com",
  `${url}/v1/links`,
  `${url}/V1`,
  `${url}/mcp?x=1`,
  "v1",
  "urn:linkgate:v1",
];
for (const resource of unknown) {
  test(`${resource.replace(url, "")} is rejected as a resource with invalid_target`, async (t) => {
    const body = new URLSearchParams({ ...credentials(app), grant_type: "client_credentials", resource });
    const answer = await fetch(`${url}/oauth/token`, { method: "POST", body });
    t.is(answer.status, 400);
    t.is(((await answer.json()) as { error: string }).error, "invalid_target");
  });
}

function credentials({ clientId, clientSecret }: TestOrganization) {
  return { client_id: clientId, client_secret: clientSecret };
}
