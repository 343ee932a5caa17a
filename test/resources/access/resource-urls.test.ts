import test from "ava";
import { apiAt, isMissing, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { freePort } from "../../harness/port.ts";
import { bearer, startTestService } from "../../harness/service.ts";

// One server with two host names: the service is on localhost, MCP and short links are on 127.0.0.1.
const port = await freePort();
const other = `http://127.0.0.1:${port}`;
const service = await startTestService({
  PORT: String(port),
  MCP_URL: `${other}/agents/mcp`,
  SHORT_URL: other,
});
const app = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));
test.after.always(() => service.close());

const ping = { jsonrpc: "2.0", id: 1, method: "ping" };

test("MCP is served at MCP_URL and nowhere else", async (t) => {
  const token = await service.token(app);
  t.is(
    (await apiAt(other, token).send("POST", "/agents/mcp", { json: ping })).status,
    200,
    "accepted by the bearer check",
  );
  for (const [origin, path, status] of [
    [service.url, "/agents/mcp", 404],
    [service.url, "/mcp", 404],
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
  t.deepEqual(body.authorization_servers, [service.url]);
  for (const wrong of [
    `${service.url}/.well-known/oauth-protected-resource/agents/mcp`,
    `${service.url}/.well-known/oauth-protected-resource/mcp`,
    `${other}/.well-known/oauth-protected-resource/mcp`,
  ]) {
    t.is((await fetch(wrong)).status, 404, wrong);
  }
});

test("a token for MCP_URL is accepted there and rejected by the API", async (t) => {
  const token = await service.token(app, { resource: `${other}/agents/mcp` });
  t.is(
    (await apiAt(other, token).send("POST", "/agents/mcp", { json: ping })).status,
    200,
    "accepted by the bearer check",
  );
  isProblem(t, await apiAt(service.url, token).get("/v1/links"), { status: 401, code: "invalid_token" });
});

test("short links are served on SHORT_URL only", async (t) => {
  const { slug, short_url } = await api.createLink();
  t.is(short_url, `${other}/${slug}`);
  t.is((await fetch(short_url, { redirect: "manual" })).status, 302);
  t.is((await fetch(`${service.url}/${slug}`, { redirect: "manual" })).status, 404);
});

test("the API is not served on the other host", async (t) => {
  const token = await service.token(app);
  t.is((await fetch(`${other}/v1/links`, { headers: bearer(token) })).status, 421);
});

for (const url of [`${other}/x`, `${service.url}/x`, `https://127.0.0.1:${port}/x`]) {
  test(`a link to ${url.replace(String(port), "port")} is rejected because it points to the service`, async (t) => {
    const reply = await api.send("POST", "/v1/links", { json: { url } });
    isProblem(t, reply, { status: 422, code: "invalid_url", fields: ["url"] });
  });
}

test("the first path segment of MCP_URL is a reserved slug", async (t) => {
  const reply = await api.send("POST", "/v1/links", { json: { url: "https://example.com", slug: "agents" } });
  isProblem(t, reply, { status: 422, code: "invalid_slug", fields: ["slug"] });
});

test("an unknown slug on SHORT_URL is a 404", async (t) => {
  isMissing(t, await apiAt(other).get("/nothing"));
});
