import { randomBytes } from "node:crypto";
import test from "ava";
import type { Knex } from "knex";
import { openDatabase } from "../../../adapters/database/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";
import { createTenants } from "../../harness/surfaces.ts";

const database = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: database.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
const { knex, close } = openDatabase(database.url);
test.after.always(async () => {
  await close();
  await service.close();
  await database.drop();
});

async function tablesOf(q: Knex): Promise<string[]> {
  if (engine === "sqlite") return q("sqlite_master").where({ type: "table" }).pluck("name");
  const schema = engine === "postgres" ? q.raw("current_schema()") : q.raw("database()");
  const rows = await q("information_schema.tables")
    .where("table_schema", schema)
    .select({ name: "table_name" });
  return rows.map(({ name }) => name);
}

/** Returns the columns that contain a text, as `table.column`. */
async function columnsWith(text: string): Promise<string[]> {
  const found = new Set<string>();
  for (const table of await tablesOf(knex)) {
    for (const row of await knex(table as never).select("*")) {
      for (const [column, value] of Object.entries(row as object)) {
        if (typeof value === "string" && value.includes(text)) found.add(`${table}.${column}`);
      }
    }
  }
  return [...found].sort();
}

test("after an account and an organization are deleted, only what the README lists remains", async (t) => {
  const { app, own, user, links } = await createTenants(service);
  const content = { title: "erased-title", tags: ["erased-tag"], metadata: { key: "erased-metadata" } };
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
    "events.actor",
    "events.data",
    "events.subject",
    "grants.payload",
    "grants.user_id",
    "interactions.user_id",
    "sessions.user_id",
    "tokens.payload",
  ]);
  t.deepEqual(await columnsWith(own.id), [
    "audit_chains.organization_id",
    "events.data",
    "events.organization_id",
    "events.subject",
    "grants.organization_id",
    "grants.payload",
    "links.organization_id",
    "organization_usage.organization_id",
    "organizations.id",
  ]);
  t.deepEqual(await columnsWith(app.clientId), [
    "events.actor",
    "events.data",
    "events.subject",
    "grants.client_id",
    "grants.payload",
    "links.created_by",
    "tokens.client_id",
    "tokens.payload",
  ]);
  t.deepEqual(await columnsWith(links.own.slug), ["events.data", "links.slug"]);
  advanceClock(61_000);
  await service.storage.purgeExpired();
  t.deepEqual(await columnsWith("erased-"), ["events.data"]);
  t.false((await columnsWith(own.id)).includes("organization_usage.organization_id"));
});
