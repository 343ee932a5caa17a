import test from "ava";
import { apiAt } from "../harness/clients/api.ts";
import { advanceClock } from "../harness/clock.ts";
import { createTestDatabase, inspect } from "../harness/database/test-database.ts";
import { OPERATOR, startTestService } from "../harness/service.ts";
import { createTenants } from "../harness/surfaces.ts";
import { until } from "../harness/webhooks.ts";

const database = await createTestDatabase({ on: "sqlite" });
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: Buffer.alloc(32, 1).toString("base64url"),
});
const { knex } = inspect(database.url);

async function columnsWith(text: string): Promise<string[]> {
  const found = new Set<string>();
  for (const table of await knex("sqlite_master").where({ type: "table" }).pluck("name"))
    for (const row of await knex(table).select("*"))
      for (const [column, value] of Object.entries(row as object))
        if (typeof value === "string" && value.includes(text)) found.add(`${table}.${column}`);
  return [...found].sort();
}

test("after an account and an organization are deleted, only what the README lists remains", async (t) => {
  const { app, own, user, links } = await createTenants(service);
  const content = {
    ...{ title: "erased-title", tags: ["erased-tag"], metadata: { key: "erased-metadata" } },
    card: { title: "erased-card" },
  };
  const api = apiAt(service.url, await service.token(own));
  const created = await api.send("POST", "/v1/links", {
    json: { url: "https://example.com/", external_id: "erased-id", ...content },
  });
  t.is(created.status, 201);
  await service.storage.accountDeletions.deleteAccount(user.id, OPERATOR);
  await service.storage.organizations.remove(app.id, OPERATOR);
  await service.storage.auditChain.appendAll();
  t.deepEqual(await columnsWith(user.username), []);
  t.deepEqual(await columnsWith(user.id), [
    ...["events.actor", "events.data", "events.subject", "grants.payload", "grants.user_id"],
    ...["interactions.user_id", "sessions.user_id", "tokens.payload"],
  ]);
  t.deepEqual(await columnsWith(own.id), [
    ...["audit_chains.organization_id", "events.data", "events.organization_id", "events.subject"],
    ...["grants.organization_id", "grants.payload", "links.organization_id"],
    ...["organization_usage.organization_id", "organizations.id"],
  ]);
  t.deepEqual(await columnsWith(app.clientId), [
    ...["events.actor", "events.data", "events.subject", "grants.client_id", "grants.payload"],
    ...["links.created_by", "tokens.client_id", "tokens.payload"],
  ]);
  // The text that is searched is in lower case, as a random slug may be.
  const withSlug = new Set(await columnsWith(links.own.slug)).difference(new Set(["links.searched"]));
  t.deepEqual([...withSlug], ["events.data", "links.address", "links.slug"]);
  advanceClock(61_000);
  await until(() => service.storage.purgeExpired());
  t.deepEqual(await columnsWith("erased-"), ["events.data"]);
  t.false((await columnsWith(own.id)).includes("organization_usage.organization_id"));
});
