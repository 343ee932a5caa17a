import { readFileSync } from "node:fs";
import test from "ava";
import Sqlite from "better-sqlite3";
import { type Database, openDatabase } from "../../../adapters/database/index.ts";
import { MIGRATIONS } from "../../../adapters/database/migrations/index.ts";
import { openStorage } from "../../../adapters/index.ts";
import { SYSTEM } from "../../../resources/events/types.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { createTestStorage } from "../../harness/database/storage.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";

// A dump of a database that the previous release created, migrated and filled through its own stores. Everything in it
// expires in 2100.
const PREVIOUS_RELEASE = new URL("./fixtures/previous-release.sql", import.meta.url);
const ENCRYPTION_KEY = Buffer.alloc(32, 7);

const ORGANIZATION = "org_01M812JT8N3CQZQPDNT6D910J4";
const USER = "usr_01M812JT8K9E4XN2F957VCADP7";
const CLIENT = "lgc_ZWdB23UsQ3sQWM1IzvT95Q";
const LINK = "lnk_01M812JT8W4H3P4CS2G4D8R0RG";
const WEBHOOK = "whk_01M812JT92T503YTS2X511C9SV";
const INVITATION_TOKEN = "qxgdcMa0GaoxhB5VfzGZb45wp4H-isP7ETSxRyiKM8s";
const RESET_TOKEN = "uY4mbMfX4SpRr-VdKgUtnqbNZcG7rHIDY01cZl8r61g";
const IDENTITY = { issuer: "https://idp.example", subject: "ada" };

const RECORDED = [
  "0001_initial",
  "0002_people_and_events",
  "0003_drop_client_document",
  "0004_reset_link_creator",
];

const schemaOf = ({ knex }: Database) =>
  knex("sqlite_master").select("type", "name", "sql").orderBy(["type", "name"]);

/** Opens a database that the previous release created. */
async function openPrevious() {
  const { url, drop } = await createTestDatabase({ empty: true });
  const file = new Sqlite(url.slice("sqlite:".length));
  file.exec(readFileSync(PREVIOUS_RELEASE, "utf8"));
  file.close();
  const storage = openStorage(url, ENCRYPTION_KEY);
  const database = openDatabase(url);
  const close = async () => {
    await Promise.all([storage.close(), database.close()]);
    await drop();
  };
  return { storage, database, close };
}

test("migrations are recorded under the names of the previous release", async (t) => {
  const { database, close } = await createTestStorage();
  t.teardown(close);
  const names = await database.knex("knex_migrations").orderBy("id").pluck("name");
  t.deepEqual(names.slice(0, RECORDED.length), RECORDED);
});

if (engine === "sqlite") {
  test("a database created by the previous release is upgraded without running a migration again", async (t) => {
    const { storage, database, close } = await openPrevious();
    t.teardown(close);
    const recorded = () => database.knex("knex_migrations").orderBy("id");
    const before = await recorded();
    t.deepEqual(
      before.map(({ name }) => name),
      RECORDED,
    );
    const added = MIGRATIONS.map(({ name }) => name).filter((name) => !RECORDED.includes(name));
    t.deepEqual(await storage.pendingMigrations(), added);
    t.deepEqual(await storage.migrate(), added);
    t.deepEqual((await recorded()).slice(0, before.length), before);
  });

  test("an upgraded database has the schema of a new one", async (t) => {
    const created = await createTestStorage();
    t.teardown(created.close);
    const { storage, database, close } = await openPrevious();
    t.teardown(close);
    await storage.migrate();
    t.deepEqual(await schemaOf(created.database), await schemaOf(database));
  });

  test("accounts, organizations and sessions of the previous release are readable", async (t) => {
    const { storage, close } = await openPrevious();
    t.teardown(close);
    await storage.migrate();
    const user = { id: USER, username: "Ada", passwordHash: "a password hash", disabled: false, email: null };
    t.deepEqual(await storage.accounts.findByUsername("ada"), user);
    t.deepEqual(await storage.accounts.findByResetToken(RESET_TOKEN), user);
    const organization = { id: ORGANIZATION, name: "Before", plan: "growth" as const };
    t.deepEqual(await storage.organizations.find(ORGANIZATION), organization);
    t.deepEqual(await storage.organizations.listByUser(USER), [{ ...organization, role: "owner" }]);
    t.deepEqual(await storage.invitations.find(INVITATION_TOKEN), {
      organizationId: ORGANIZATION,
      organizationName: "Before",
      role: "member",
      inviter: "Ada",
    });
    t.is(await storage.identities.findUserId(IDENTITY), USER);
    t.deepEqual(
      (await storage.sessions.listByUser(USER)).map(({ id, means }) => ({ id, means })),
      [{ id: "session-uid", means: "session" }],
    );
    const entries = await storage.audit.list(ORGANIZATION, {}, 100);
    t.is(entries.length, 8);
    t.is(entries.at(-1)?.type, "organization.created");
    t.is(entries[0]?.names.get(USER), "Ada");
  });

  test("clients, grants and tokens of the previous release stay valid", async (t) => {
    const { storage, close } = await openPrevious();
    t.teardown(close);
    await storage.migrate();
    const client = await storage.clients.find(CLIENT);
    t.deepEqual(client?.redirectUris, ["https://app.example.com/callback"]);
    t.is(client?.secrets.length, 1);
    t.is(client?.organization.id, ORGANIZATION);
    const [grant] = await storage.grants.listByUser(USER);
    t.is(grant?.id, "grant-before");
    t.deepEqual(grant?.scopes, ["links:read"]);
    const token = await storage.findActiveToken("token-before");
    t.is(token?.userId, USER);
    t.is(token?.organizationId, ORGANIZATION);
    t.is(token?.role, "owner");
  });

  test("links and webhooks of the previous release are readable", async (t) => {
    const { storage, close } = await openPrevious();
    t.teardown(close);
    await storage.migrate();
    const link = await storage.links.find(ORGANIZATION, LINK);
    t.like(link, { slug: "before", title: "A title", externalId: "ext-1", clicks: 1, archived: false });
    t.deepEqual(link?.tags, ["one", "two"]);
    t.deepEqual(link?.metadata, { key: "value" });
    t.is((await storage.links.resolve("before"))?.id, LINK);
    const day = Math.floor(Date.UTC(2026, 10, 22) / 86_400_000);
    t.deepEqual(await storage.links.analytics(ORGANIZATION, LINK, day, day), {
      days: [{ day, bot: false, clicks: 1 }],
      referrers: [{ name: "example.org", clicks: 1 }],
      countries: [{ name: "FR", clicks: 1 }],
    });
    t.like(await storage.webhooks.find(ORGANIZATION, WEBHOOK), { enabled: true, disabledReason: null });
    t.is((await storage.webhooks.deliveries(ORGANIZATION, WEBHOOK, 10)).length, 1);
  });

  test("secrets encrypted by the previous release are decrypted", async (t) => {
    const { storage, close } = await openPrevious();
    t.teardown(close);
    await storage.migrate();
    t.is(await storage.keys.check(), 1);
    t.is(await storage.keys.load("before", async () => "another key"), "a key");
    const limits = {
      max: 10,
      perWebhook: 10,
      perHost: 10,
      perOrganization: 10,
      failing: { max: 10, perWebhook: 10, perHost: 10, perOrganization: 10 },
      inFlight: new Map(),
      slow: new Set<string>(),
      limitsOf,
      actor: SYSTEM,
    };
    const [delivery] = await storage.deliveries.lease(limits);
    t.deepEqual(delivery?.secrets, ["whsec_AAAA"]);
    const principal = { organizationId: ORGANIZATION, clientId: CLIENT };
    t.deepEqual(await storage.idempotency.begin(principal, "key-before", "fingerprint"), {
      answer: "a response",
    });
  });
}
