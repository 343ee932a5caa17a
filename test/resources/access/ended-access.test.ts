import { randomBytes } from "node:crypto";
import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService, type TestOrganization, type TestUser } from "../../harness/service.ts";

export const databases = "all";

const database = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});

const LIFETIME_MS = 3_600_000;
const app = await service.createOrganization();

test.after.always(async () => {
  await knex.destroy();
  await service.close();
  await database.drop();
});

const knex = knexFactory(knexConfig(database.url));

type Parties = { app: TestOrganization; own: TestOrganization; user: TestUser };

// Changes after which a token is no longer valid.
const changes: [name: string, change: (parties: Parties) => Promise<unknown>][] = [
  [
    "its user was disabled",
    ({ user }) => knex("users").where({ id: user.id }).update({ disabled_at: Date.now() }),
  ],
  [
    "its user left the organization",
    ({ own, user }) => knex("memberships").where({ organization_id: own.id, user_id: user.id }).delete(),
  ],
  [
    "its grant was revoked",
    ({ user }) => knex("grants").where({ user_id: user.id }).update({ revoked_at: Date.now() }),
  ],
];
for (const [name, change] of changes) {
  test(`a user's token is rejected on the next request after ${name}`, async (t) => {
    const [app, own] = [await service.createOrganization(), await service.createOrganization()];
    const user = await service.createUser([own.id]);
    const tokens = await tokensFor(service, app, user);
    const api = apiAt(service.url, tokens.access_token);
    t.is((await api.get("/v1/links")).status, 200);
    await change({ app, own, user });
    isProblem(t, await api.get("/v1/links"), { status: 401, code: "invalid_token" });
    const mcp = await api.send("POST", "/mcp", { json: { jsonrpc: "2.0", id: 1, method: "ping" } });
    isProblem(t, mcp, { status: 401, code: "invalid_token" });
  });
}

test("leaving one organization does not revoke grants for another", async (t) => {
  const [app, first, second] = [
    await service.createOrganization(),
    await service.createOrganization(),
    await service.createOrganization(),
  ];
  const user = await service.createUser([first.id, second.id]);
  const tokens = await tokensFor(service, app, user, { organizationId: second.id });
  await knex("memberships").where({ organization_id: first.id, user_id: user.id }).delete();
  const { status, body } = await apiAt(service.url, tokens.access_token).get<{ id: string }>(
    "/v1/organization",
  );
  t.is(status, 200);
  t.is(body.id, second.id);
});

test("rotating a compromised secret revokes the client's tokens immediately", async (t) => {
  const app = await service.createOrganization();
  const api = apiAt(service.url, await service.token(app));
  t.is((await api.get("/v1/links")).status, 200);
  await service.storage.clients.rotateSecret(app.id, { overlapMs: 0, compromised: true }, OPERATOR);
  isProblem(t, await api.get("/v1/links"), { status: 401, code: "invalid_token" });
});

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

test.serial("an access token expires after an hour", async (t) => {
  const api = apiAt(service.url, await service.token(app));
  advanceClock(LIFETIME_MS - 10_000);
  t.is((await api.get("/v1/links")).status, 200);
  advanceClock(10_001);
  const reply = await api.get("/v1/links");
  isProblem(t, reply, { status: 401, code: "invalid_token" });
  t.is(challengeOf(reply)?.error, "invalid_token");
  const mcp = await api.send("POST", "/mcp", { json: { jsonrpc: "2.0", id: 1, method: "ping" } });
  isProblem(t, mcp, { status: 401, code: "invalid_token" });
});
