import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());
const { organizations } = service.storage;

const MCP = {
  json: { jsonrpc: "2.0", id: 1, method: "tools/list" },
  headers: { accept: "application/json, text/event-stream" },
};
const calls: [method: string, path: string, options: object][] = [
  ["GET", "/v1/links", {}],
  ["GET", "/v1/links/lnk_unknown", {}],
  ["POST", "/v1/links", { json: { url: "https://example.com" } }],
  ["PATCH", "/v1/links/lnk_unknown", { json: { title: "x" } }],
  ["DELETE", "/v1/links/lnk_unknown", {}],
  ["GET", "/v1/organization", {}],
  ["POST", "/mcp", MCP],
];

for (const [method, path, options] of calls) {
  test(`${method} ${path} is rejected when the organization is on the free plan`, async (t) => {
    const app = await service.createOrganization();
    const api = apiAt(service.url, await service.token(app));
    t.not((await api.send(method, path, options)).status, 403);
    await organizations.setPlan(app.id, "free", OPERATOR);
    const reply = await api.send(method, path, options);
    isProblem(t, reply, { status: 403, code: "plan_required" });
    t.false(reply.headers.has("www-authenticate"), "no other scope or token would help");
  });
}

test("a downgrade and an upgrade take effect on the next request with the same token", async (t) => {
  const app = await service.createOrganization();
  const api = apiAt(service.url, await service.token(app));
  for (const [plan, status] of [
    ["free", 403],
    ["premium", 200],
    ["free", 403],
    ["growth", 200],
  ] as const) {
    await organizations.setPlan(app.id, plan, OPERATOR);
    t.is((await api.get("/v1/organization")).status, status, plan);
    t.is((await api.send("POST", "/mcp", MCP)).status, status, plan);
  }
});

test("an app is rejected when its own or the granting organization is on the free plan", async (t) => {
  const [app, own] = [await service.createOrganization(), await service.createOrganization()];
  const user = await service.createUser([own.id]);
  const tokens = await tokensFor(service, app, user);
  const api = apiAt(service.url, tokens.access_token);
  t.is((await api.get("/v1/links")).status, 200);
  for (const { id } of [app, own]) {
    await organizations.setPlan(id, "free", OPERATOR);
    isProblem(t, await api.get("/v1/links"), { status: 403, code: "plan_required" });
    isProblem(t, await api.send("POST", "/mcp", MCP), { status: 403, code: "plan_required" });
    await organizations.setPlan(id, "growth", OPERATOR);
    t.is((await api.get("/v1/links")).status, 200);
  }
});

test("a missing or invalid token is rejected with 401 on any plan", async (t) => {
  const app = await service.createOrganization();
  await organizations.setPlan(app.id, "free", OPERATOR);
  isProblem(t, await apiAt(service.url).get("/v1/links"), { status: 401, code: "missing_token" });
  isProblem(t, await apiAt(service.url, "lga_x").get("/v1/links"), { status: 401, code: "invalid_token" });
});
