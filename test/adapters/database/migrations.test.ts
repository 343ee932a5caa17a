import { randomBytes } from "node:crypto";
import test from "ava";
import { sha256 } from "../../../adapters/crypto/hash.ts";
import { openDatabase } from "../../../adapters/database/index.ts";
import { MIGRATIONS } from "../../../adapters/database/migrations/index.ts";
import { readUpgrade } from "../../../adapters/database/migrations/upgrade.ts";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { runCommand } from "../../harness/program.ts";

const ALL = MIGRATIONS.map(({ name }) => name);

test("an empty database is migrated once, and a second time applies nothing", async (t) => {
  const { first, second, close } = await createTestStorage({ migrated: false });
  t.teardown(close);
  t.deepEqual(await first.pendingMigrations(), ALL);
  t.deepEqual(await first.migrate(), ALL);
  t.deepEqual(await first.pendingMigrations(), []);
  t.deepEqual(await first.migrate(), []);
  t.deepEqual(await second.migrate(), []);
});

test("concurrent migrations of an empty database all succeed, and one applies them", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { url, first, second, database, encryptionKey, close } = await createTestStorage({
      migrated: false,
    });
    const fourth = openStorage(url, encryptionKey);
    try {
      const applied = await Promise.all([
        first.migrate(),
        second.migrate(),
        database.migrate(),
        fourth.migrate(),
      ]);
      t.deepEqual(applied.flat(), ALL);
      for (const storage of [first, second, database, fourth])
        t.deepEqual(await storage.pendingMigrations(), []);
      await fourth.organizations.create("Works", "growth", OPERATOR);
      t.is((await first.organizations.list()).length, 1);
    } finally {
      await fourth.close();
      await close();
    }
  }
});

test("concurrent migrate commands on an empty database all succeed, and one applies them", async (t) => {
  for (let round = 0; round < 3; round++) {
    const database = await createTestDatabase({ empty: true });
    const settings = {
      DATABASE_URL: database.url,
      ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
      LOG_LEVEL: "silent",
    };
    const results = await Promise.all(
      Array.from({ length: 3 }, () => runCommand(["--json", "migrate"], { settings })),
    );
    await database.drop();
    for (const { code, stderr } of results) t.deepEqual({ code, stderr }, { code: 0, stderr: "" });
    t.deepEqual(
      results.flatMap(({ stdout }) => JSON.parse(stdout).applied),
      ALL,
    );
  }
});

test("a process that died during a migration does not block the others", async (t) => {
  const { first, second, database, close } = await createTestStorage();
  t.teardown(close);
  await database.knex("knex_migrations_lock").update({ is_locked: 1 });
  t.deepEqual(await first.migrate(), []);
  await database.knex("knex_migrations_lock").insert({ is_locked: 0 });
  t.deepEqual(await second.migrate(), []);
});

test("a reset link without a recorded creator is revoked by the upgrade", async (t) => {
  const { first, database, close } = await createTestStorage({ migrated: false });
  t.teardown(close);
  for (const name of ALL.slice(0, 2)) await database.knex.migrate.up({ name });
  const [token, now] = ["a-token", Date.now()];
  const times = { created_at: now, expires_at: now + 60_000 };
  const old = { id: "usr_old", username: "old", username_key: "old", password_hash: "old", created_at: now };
  await database.knex("users").insert(old);
  const link = { purpose: "password_reset" as const, user_id: old.id, ...times };
  await database.knex("one_time_links").insert([
    { ...link, id_hash: sha256(token), used_at: null },
    { ...link, id_hash: sha256("used"), used_at: now - 1 },
  ]);
  await first.migrate();
  t.is(await first.accounts.findByResetToken(token), undefined);
  t.false(await first.accounts.resetPassword(token, "new"));
  t.is((await first.accounts.find(old.id))?.passwordHash, "old");
  const rows = await database.knex("one_time_links").orderBy("used_at").select("used_at", "created_by");
  t.is(rows[0]?.used_at, now - 1);
  t.true(Number(rows[1]?.used_at) >= now);
  t.true(await first.accounts.resetPassword(await first.accounts.createResetToken(old.id, 60_000), "new"));
});

for (const TZ of ["America/Los_Angeles", "Pacific/Kiritimati"]) {
  test(`the time of a migration in the time zone ${TZ} is right in any other`, async (t) => {
    const { url, drop } = await createTestDatabase({ empty: true });
    const database = openDatabase(url);
    t.teardown(() => database.close().then(drop));
    const before = Date.now();
    const settings = { DATABASE_URL: url, ENCRYPTION_KEY: randomBytes(32).toString("base64url"), TZ };
    t.is((await runCommand(["migrate"], { settings })).code, 0);
    const upgrade = await readUpgrade(database);
    t.false(upgrade?.isFromPrevious);
    // MariaDB stores seconds.
    const migratedAt = Number(upgrade?.migratedAt);
    t.true(migratedAt > before - 1000 && migratedAt <= Date.now() + 1000, `${migratedAt - before}`);
  });
}

test("listing pending migrations changes nothing", async (t) => {
  const { first, database, close } = await createTestStorage({ migrated: false });
  t.teardown(close);
  await first.pendingMigrations();
  t.false(await database.knex.schema.hasTable("knex_migrations"));
});

if (engine === "mysql") {
  test("MariaDB: titles may use any script, regardless of the server's default character set", async (t) => {
    const { first, second, database, close } = await createTestStorage({ migrated: false });
    t.teardown(close);
    await database.knex.raw("alter database character set latin1");
    await first.migrate();
    const { organization } = await first.organizations.create("漢字 \u{1f512}", "growth", OPERATOR);
    const fields = linkFields({ slug: "any", title: "ü 漢字 \u{1f512}", tags: ["\u{1f513}"] });
    const link = await first.links.create(organization.id, OPERATOR, fields);
    const found = "id" in link ? await second.links.find(organization.id, link.id) : undefined;
    t.is(found?.title, "ü 漢字 \u{1f512}");
    t.deepEqual(found?.tags, ["\u{1f513}"]);
    t.is((await second.organizations.find(organization.id))?.name, "漢字 \u{1f512}");
  });
}
