import { randomBytes } from "node:crypto";
import test from "ava";
import type { Knex } from "knex";
import { sha256 } from "../../../adapters/crypto/hash.ts";
import { openDatabase } from "../../../adapters/database/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { purgeExpired } from "../../harness/database/purge.ts";
import { createTestStorage } from "../../harness/database/storage.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";
import { createTenants } from "../../harness/surfaces.ts";

export const databases = "all";

const storage = await createTestStorage();

const serviceDatabase = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: serviceDatabase.url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});

test.after.always(() => storage.close());
test.after.always(async () => {
  await close();
  await service.close();
  await serviceDatabase.drop();
});

const { first, second, database } = storage;
const { knex } = database;

const NOTHING = {
  tokens: 0,
  sessions: 0,
  interactions: 0,
  one_time_links: 0,
  notices: 0,
  mails: 0,
  grants: 0,
  client_secrets: 0,
  client_secret_uses: 0,
  invitations: 0,
  known_devices: 0,
  sign_in_failures: 0,
  idempotency_keys: 0,
  deliveries: 0,
  events: 0,
};
const seconds = () => Math.floor(Date.now() / 1000);
const tokens = (kind: string) => first.oidcAdapter(kind);

/** Returns rows without references that expired a second ago. */
function expiredTokens(count: number) {
  return Array.from({ length: count }, (_, index) => ({
    id_hash: sha256(`expired ${index}`),
    kind: "AccessToken",
    payload: "{}",
    expires_at: Date.now() - 1000,
  }));
}

async function insertExpired(count: number) {
  const rows = expiredTokens(count);
  while (rows.length > 0) await knex("tokens").insert(rows.splice(0, 500));
}

test.serial("purging an empty database deletes nothing", async (t) => {
  t.deepEqual(await first.purgeExpired(), NOTHING);
});

test.serial("expired rows of every table are deleted, and no others", async (t) => {
  const { organization } = await first.organizations.create("Swept", "growth", OPERATOR);
  const user = await first.accounts.create("swept", "a hash", OPERATOR);
  const userId = user?.id as string;
  for (const lifetime of [60, 600]) {
    const exp = seconds() + lifetime;
    await tokens("AccessToken").upsert(`token-${lifetime}`, { exp }, lifetime);
    await first
      .oidcAdapter("Session")
      .upsert(`session-${lifetime}`, { uid: `uid-${lifetime}`, accountId: userId }, lifetime);
    await first.oidcAdapter("Interaction").upsert(`interaction-${lifetime}`, {}, lifetime);
    await first
      .oidcAdapter("Grant")
      .upsert(`grant-${lifetime}`, { clientId: "lgc_a", accountId: userId, exp }, lifetime);
  }
  const short = await first.accounts.createResetToken(userId, 60_000);
  const long = await first.accounts.createResetToken(userId, 600_000);
  await first.clients.rotateSecret(organization.id, { overlapMs: 60_000, compromised: false }, OPERATOR);
  advanceClock(61_000);

  t.deepEqual(await second.purgeExpired(), {
    ...NOTHING,
    tokens: 1,
    sessions: 1,
    interactions: 1,
    one_time_links: 1,
    grants: 1,
    client_secrets: 1,
  });
  t.is(await tokens("AccessToken").find("token-60"), undefined);
  t.truthy(await tokens("AccessToken").find("token-600"));
  t.truthy(await first.oidcAdapter("Session").find("session-600"));
  t.truthy(await first.oidcAdapter("Interaction").find("interaction-600"));
  t.truthy(await first.oidcAdapter("Grant").find("grant-600"));
  t.is(await first.accounts.findByResetToken(short), undefined);
  t.is((await first.accounts.findByResetToken(long))?.id, userId);
  t.is((await first.clients.findByOrganization(organization.id))?.secrets.length, 1);
  t.deepEqual(await second.purgeExpired(), NOTHING);
});

test.serial("a used code is kept as long as its grant, so a replay is detected", async (t) => {
  const grant = { clientId: "lgc_a", accountId: "usr_a", exp: seconds() + 3600 };
  await first.oidcAdapter("Grant").upsert("family", grant, 3600);
  for (const id of ["used", "unused"]) {
    await tokens("AuthorizationCode").upsert(
      id,
      { clientId: "lgc_a", grantId: "family", exp: seconds() + 60 },
      60,
    );
  }
  await tokens("AuthorizationCode").consume("used");
  advanceClock(3_000_000);
  await first.purgeExpired();
  t.true((await second.oidcAdapter("AuthorizationCode").find("used"))?.consumed);
  t.is(await second.oidcAdapter("AuthorizationCode").find("unused"), undefined);
  advanceClock(700_000);
  await first.purgeExpired();
  t.is(await second.oidcAdapter("AuthorizationCode").find("used"), undefined);
  t.is((await knex("tokens").where({ grant_id: "family" })).length, 0);
});

test.serial("expired deliveries and their events are deleted, and the audit log is kept", async (t) => {
  const { organization } = await first.organizations.create("Told", "growth", OPERATOR);
  const fields = { url: "https://example.com/", events: ["webhook.test" as const], enabled: true };
  const webhook = await first.webhooks.create(organization.id, OPERATOR, fields, "whsec_AAAA");
  if (!("id" in webhook)) return t.fail();
  // Besides the one that verifies the webhook.
  await first.webhooks.test(organization.id, webhook.id, OPERATOR);
  await knex("deliveries").decrement("expires_at", 31 * 24 * 3_600_000);
  await knex("events").where({ type: "webhook.test" }).update({ expires_at: Date.now() });
  t.deepEqual(await second.purgeExpired(), { ...NOTHING, deliveries: 2, events: 2 });
  t.is((await knex("events").where({ organization_id: organization.id })).length, 3);
});

test.serial("rows are deleted in batches of at most 100", async (t) => {
  await insertExpired(1700);
  const deletes: string[] = [];
  const stop = first.onStatement((sql) => /^delete from .tokens/.test(sql) && deletes.push(sql));
  t.is((await first.purgeExpired())?.tokens, 1700);
  stop();
  t.is(deletes.length, 17);
  t.is((await knex("tokens").where("expires_at", "<", Date.now())).length, 0);
});

test.serial("a stopped purge ends after its batch, and another process can continue", async (t) => {
  await insertExpired(1700);
  const stop = new AbortController();
  const unsubscribe = first.onStatement((sql) => /^delete from .tokens/.test(sql) && stop.abort());
  t.is((await first.purgeExpired(stop.signal))?.tokens, 100);
  unsubscribe();
  t.deepEqual(await knex("leases"), []);
  t.is((await second.purgeExpired())?.tokens, 1600);
});

test.serial("of two concurrent purges, one deletes everything and the other nothing", async (t) => {
  for (let round = 0; round < 5; round++) {
    await insertExpired(1200);
    const answers = await Promise.all([first.purgeExpired(), second.purgeExpired()]);
    t.is(answers.filter((answer) => answer === undefined).length, 1);
    t.is(answers.find((answer) => answer !== undefined)?.tokens, 1200);
  }
  t.deepEqual(await knex("leases"), []);
});

test.serial("another process can purge after the first one is done", async (t) => {
  t.deepEqual(await first.purgeExpired(), NOTHING);
  t.deepEqual(await second.purgeExpired(), NOTHING);
});

test.serial("the lease of a process that died blocks the others until it expires", async (t) => {
  await knex("leases").insert({
    name: "sweep",
    holder: "a process that died",
    expires_at: Date.now() + 30_000,
  });
  t.is(await first.purgeExpired(), undefined);
  advanceClock(29_000);
  t.is(await second.purgeExpired(), undefined);
  advanceClock(2000);
  await insertExpired(1200);
  const answers = await Promise.all([first.purgeExpired(), second.purgeExpired()]);
  t.is(answers.filter((answer) => answer === undefined).length, 1);
  t.deepEqual(await knex("leases"), []);
});

// SQLite has one writer at a time, so a test cannot change a row between the SELECT and the DELETE there.
if (engine !== "sqlite") {
  test.serial("PostgreSQL, MariaDB: a row renewed during the purge is kept", async (t) => {
    const rows = expiredTokens(1);
    await knex("tokens").insert(rows);
    const deleting = Promise.withResolvers<void>();
    const stop = first.onStatement((sql) => /^delete from .tokens/.test(sql) && deleting.resolve());
    const renewal = await knex.transaction();
    await renewal("tokens").update({ expires_at: Date.now() + 60_000 });
    const purged = first.purgeExpired();
    await deleting.promise;
    await renewal.commit();
    t.is((await purged)?.tokens, 0);
    stop();
    t.is((await knex("tokens").where({ id_hash: rows[0]?.id_hash as string })).length, 1);
  });
}

const { knex: tables, close } = openDatabase(serviceDatabase.url);

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
  for (const table of await tablesOf(tables)) {
    for (const row of await tables(table as never).select("*")) {
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
  // The text that is searched is in lower case, as a random slug may be.
  const columns = await columnsWith(links.own.slug);
  t.deepEqual(
    columns.filter((column) => column !== "links.searched"),
    ["events.data", "links.slug"],
  );
  advanceClock(61_000);
  await purgeExpired(service.storage);
  t.deepEqual(await columnsWith("erased-"), ["events.data"]);
  t.false((await columnsWith(own.id)).includes("organization_usage.organization_id"));
});
