import { randomBytes } from "node:crypto";
import test from "ava";
import { type Engine, rowsOf } from "../../../adapters/database/engine.ts";
import { MIGRATIONS, migrations } from "../../../adapters/database/migrations/index.ts";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { ADDITIVE, REWRITING } from "../../harness/database/additive-migration.ts";
import { createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { endingOf, runCommand, startServer, stopPrograms } from "../../harness/program.ts";

export const databases = "all";
export const stage = "processes";

test.after.always(stopPrograms);

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

for (const name of ["0001_initial", "0008_fapi"])
  test(`a database of a version before 0.4.0 is refused, and stays as it is: ${name}`, async (t) => {
    const { url, first, database, close } = await createTestStorage({ migrated: false });
    t.teardown(close);
    await database.knex.schema.createTable("knex_migrations", (table) => {
      table.increments();
      table.string("name");
      table.integer("batch");
      table.timestamp("migration_time");
    });
    await database.knex("knex_migrations").insert({ name, batch: 1 });
    const message =
      "The database was created before linkgate 0.4.0 and can't be upgraded: use an empty database.";
    await t.throwsAsync(first.migrate(), { name: "IncompatibleSchema", message });
    const settings = { DATABASE_URL: url, ENCRYPTION_KEY: randomBytes(32).toString("base64url"), PORT: "0" };
    t.like(await endingOf(startServer({ settings })), { code: 1, stdout: "", stderr: `${message}\n` });
    t.like(await runCommand(["migrate"], { settings }), { code: 1, stderr: `${message}\n` });
    t.false(await database.knex.schema.hasTable("users"));
  });

test("listing pending migrations changes nothing", async (t) => {
  const { first, database, close } = await createTestStorage({ migrated: false });
  t.teardown(close);
  await first.pendingMigrations();
  t.false(await database.knex.schema.hasTable("knex_migrations"));
});

// A table that is rebuilt gets another one.
const IDS: Record<string, string> = {
  postgres:
    "select relname as name, relfilenode as id from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace",
  mysql:
    "select substring_index(name, '/', -1) as name, table_id as id from information_schema.innodb_sys_tables where name like concat(database(), '/%')",
};

if (engine !== "sqlite") {
  test("a migration that rebuilds a table announces it", async (t) => {
    const { database, close } = await createTestStorage({ migrated: false });
    t.teardown(close);
    const read = async () => {
      const rows = rowsOf<{ name: string; id: number }>(await database.knex.raw(IDS[engine] ?? ""));
      return new Map(rows.map(({ name, id }) => [name, id]));
    };
    const all = [...MIGRATIONS, REWRITING, ADDITIVE];
    for (const [index, { name, rewrites }] of all.entries()) {
      const before = await read();
      const migrationSource = migrations(engine as Engine, all.slice(0, index + 1));
      await database.knex.migrate.latest({ migrationSource, disableTransactions: engine === "mysql" });
      const after = await read();
      const rebuilt = [...before].filter(([table, id]) => after.has(table) && after.get(table) !== id);
      const announced = rewrites(engine as Engine);
      t.deepEqual(
        rebuilt.map(([table]) => table).filter((table) => !announced.includes(table)),
        [],
        name,
      );
      // MariaDB rebuilds a table that has an index on a virtual column.
      if (engine === "mysql" && name === REWRITING.name) t.is(rebuilt[0]?.[0], "deliveries");
    }
  });
}

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
