import test from "ava";
import { type Engine, rowsOf } from "../../adapters/database/engine.ts";
import { MIGRATIONS, migrations } from "../../adapters/database/migrations/index.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { ADDITIVE, REWRITING } from "../harness/database/additive-migration.ts";
import { createTestStorage, linkFields } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";

export const databases = "all";

const ALL = MIGRATIONS.map(({ name }) => name);

test("the pending migrations of an empty database are listed, and not applied", async (t) => {
  const { first, database, close } = await createTestStorage({ migrated: false });
  t.teardown(close);
  t.deepEqual(await first.pendingMigrations(), ALL);
  t.false(await database.knex.schema.hasTable("knex_migrations"));
});

test("concurrent migrations of an empty database all succeed, and one applies them, once", async (t) => {
  for (let round = 0; round < 3; round++) {
    const { first, second, database, close } = await createTestStorage({ migrated: false });
    t.teardown(close);
    const all = [first, second, database];
    const applied = await Promise.all(all.map((one) => one.migrate()));
    t.deepEqual(applied.flat(), ALL);
    for (const one of all) {
      t.deepEqual(await one.pendingMigrations(), []);
      t.deepEqual(await one.migrate(), []);
    }
    await second.organizations.create("Works", "growth", OPERATOR);
    t.is((await first.organizations.list()).length, 1);
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

test("a database of a version before 0.4.0 is refused, and stays as it is", async (t) => {
  const { first, database, close } = await createTestStorage({ migrated: false });
  t.teardown(close);
  await database.knex.raw("create table knex_migrations (id integer, name varchar(255), batch integer)");
  await database.knex("knex_migrations").insert({ name: "0008_fapi", batch: 1 });
  const message =
    "The database was created before linkgate 0.4.0 and can't be upgraded: use an empty database.";
  await t.throwsAsync(first.migrate(), { name: "IncompatibleSchema", message });
  t.false(await database.knex.schema.hasTable("users"));
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
      const surprising = rebuilt.filter(([table]) => !announced.includes(table));
      t.deepEqual(surprising, [], name);
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
