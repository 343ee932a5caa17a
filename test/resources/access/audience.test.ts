import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { startTestService, type TestOrganization } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const user = await service.createUser([app.id]);
test.after.always(() => service.close());
const { url } = service;

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
