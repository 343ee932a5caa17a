import { randomBytes } from "node:crypto";
import test from "ava";
import knexFactory from "knex";
import { knexConfig } from "../../../adapters/database/engine.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService, type TestOrganization, type TestUser } from "../../harness/service.ts";

const database = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
const knex = knexFactory(knexConfig(database.url));
test.after.always(async () => {
  await knex.destroy();
  await service.close();
  await database.drop();
});

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
