import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import type { Knex } from "knex";
import { type Engine, rowsOf } from "../../adapters/database/engine.ts";
import { type Database, openDatabase } from "../../adapters/database/index.ts";
import { MIGRATIONS, migrate, migrations } from "../../adapters/database/migrations/index.ts";
import type { Migration } from "../../adapters/database/migrations/migration.ts";
import { ADDITIVE, REWRITING } from "../harness/database/additive-migration.ts";
import { createTestStorage, linkFields, OPERATOR } from "../harness/database/storage.ts";
import { createTestDatabase, engine, inspect, serverOf } from "../harness/database/test-database.ts";

export const databases = "all";

const migrateTo = (knex: Knex, all: Migration[]) =>
  knex.migrate.latest({
    migrationSource: migrations(engine as Engine, all),
    disableTransactions: engine === "mysql",
  });

const openEmpty = () => createTestStorage({ migrated: false });

const ALL = MIGRATIONS.map(({ name }) => name);

test("pending migrations are listed, and of concurrent processes one applies them, once", async (t) => {
  for (let round = 0; round < 3; round++) {
    const { first, second, database } = await openEmpty();
    const all = [first, second, database];
    for (const one of all) t.deepEqual(await one.pendingMigrations(), ALL);
    t.false(await database.knex.schema.hasTable("knex_migrations"));
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
  const { first, second, database } = await createTestStorage();
  await database.knex("knex_migrations_lock").update({ is_locked: 1 });
  t.deepEqual(await first.migrate(), []);
  await database.knex("knex_migrations_lock").insert({ is_locked: 0 });
  t.deepEqual(await second.migrate(), []);
});

test("a database of a version before 0.4.0 is refused, and stays as it is", async (t) => {
  const { first, database } = await openEmpty();
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

if (engine !== "sqlite")
  test("a migration that rebuilds a table announces it", async (t) => {
    const { database } = await openEmpty();
    const read = async () => {
      const rows = rowsOf<{ name: string; id: number }>(await database.knex.raw(IDS[engine] ?? ""));
      return new Map(rows.map(({ name, id }) => [name, id]));
    };
    const all = [...MIGRATIONS, REWRITING, ADDITIVE];
    for (const [index, { name, rewrites }] of all.entries()) {
      const before = await read();
      await migrateTo(database.knex, all.slice(0, index + 1));
      const after = await read();
      const rebuilt = [...before].filter(([table, id]) => after.has(table) && after.get(table) !== id);
      const announced = rewrites(engine as Engine);
      const surprising = rebuilt.filter(([table]) => !announced.includes(table));
      t.deepEqual(surprising, [], name);
      // MariaDB rebuilds a table that has an index on a virtual column.
      if (engine === "mysql" && name === REWRITING.name) t.is(rebuilt[0]?.[0], "deliveries");
    }
  });

// The processes that migrate die here: the database is real, and each of their statements is the last one once.

type Statement = { sql: string; bindings?: unknown[] };

/** Whether a process may die after a statement: on SQLite, all migrations are one transaction. */
function isLast({ engine }: Database, { sql }: Statement): boolean {
  return engine === "sqlite"
    ? /^insert into .knex_migrations. /i.test(sql)
    : !/^\s*(select|show|set|begin|commit)\b/i.test(sql);
}

/** Migrates again and again: each process dies after the first statement that no other one has died after. */
async function migrateWithDeaths(database: Database): Promise<string[]> {
  const { knex, engine } = database;
  const deaths = new Set<string>();
  let isAlive = true;
  const die = (_: unknown, statement: Statement) => {
    const values = statement.bindings?.filter((value) => !(value instanceof Date));
    const key = `${statement.sql} ${JSON.stringify(values)}`;
    if (!isLast(database, statement) || deaths.has(key)) return;
    deaths.add(key);
    isAlive = false;
    throw new Error("the process dies");
  };
  knex.on("query-response", die);
  do {
    isAlive = true;
    await migrate({ knex, engine, unlimited: (work) => work(database) }).catch((error) => {
      if (isAlive) throw new Error(`after ${[...deaths].at(-1)}: ${error}`);
    });
  } while (!isAlive);
  knex.off("query-response", die);
  return [...deaths];
}

const SCHEMA: Record<Engine, string[]> = {
  sqlite: ["select type, name, sql from sqlite_master order by type, name"],
  postgres: [
    `select table_name, column_name, data_type, character_maximum_length, column_default, is_nullable
      from information_schema.columns where table_schema = 'public' order by table_name, column_name`,
    "select indexdef from pg_indexes where schemaname = 'public' order by indexdef",
    "select conname, pg_get_constraintdef(oid) from pg_constraint order by conname, 2",
  ],
  mysql: [
    `select table_name, column_name, column_type, collation_name, column_default, is_nullable, extra,
      generation_expression from information_schema.columns where table_schema = database() order by 1, 2`,
    `select table_name, index_name, seq_in_index, column_name, non_unique from information_schema.statistics
      where table_schema = database() order by 1, 2, 3`,
    `select table_name, constraint_name, check_clause from information_schema.check_constraints
      where constraint_schema = database() order by 1, 2`,
    `select table_name, constraint_name, referenced_table_name from information_schema.referential_constraints
      where constraint_schema = database() order by 1, 2`,
  ],
};

async function schemaOf({ knex, engine }: Database): Promise<unknown[]> {
  const results = [];
  for (const query of SCHEMA[engine]) results.push(await knex.raw(query));
  return results.map(rowsOf);
}

test("an installation whose process dies after any of its changes is completed by the next one", async (t) => {
  const [{ database: interrupted }, { database: complete }] = [await openEmpty(), await openEmpty()];
  await complete.migrate();
  const deaths = await migrateWithDeaths(interrupted);
  for (const { name } of MIGRATIONS) t.true(deaths.join("\n").includes(name), name);
  t.deepEqual(await interrupted.pendingMigrations(), []);
  t.deepEqual(await schemaOf(interrupted), await schemaOf(complete));
});

if (engine !== "sqlite")
  test("an upgrade completes beside the transactions of the previous version", async (t) => {
    const { url, knex, database } = await openEmpty();
    await database.migrate();
    const previous = inspect(url);
    let isMigrating = true;
    const use = async (...tables: string[]) => {
      while (isMigrating)
        await previous.transaction(async (trx) => {
          for (const table of tables) {
            await trx(table).first();
            await pause(5);
          }
        });
    };
    const inUse = Promise.all([
      use("grants", "organizations"),
      use("grants", "links", "organizations"),
      use("organizations", "tokens", "grants", "links"),
      use("tokens", "links"),
      use("links", "deliveries", "grants"),
    ]);
    const [, applied] = await migrateTo(knex, [...MIGRATIONS, ADDITIVE]).finally(() => {
      isMigrating = false;
    });
    t.deepEqual(applied, [ADDITIVE.name]);
    await inUse;
  });

// What can't store every text, and the message about it.
const UNSUITABLE: Record<string, string[]> = {
  postgres: ["LATIN1", "SQL_ASCII"],
  mysql: ["latin1", "utf8mb3"],
};
const messageAbout = (encoding: string) =>
  engine === "postgres"
    ? `The database has the encoding ${encoding}, which can't store every text. Use a database that was created with: create database linkgate encoding 'UTF8' template template0`
    : `The column links.title has the character set ${encoding}, which can't store every text. Convert the table to utf8mb4, or use an empty database.`;

for (const encoding of UNSUITABLE[engine] ?? [])
  test(`a database with the encoding ${encoding} is refused by migrations`, async (t) => {
    const { url } = await createTestDatabase({ empty: true });
    if (engine === "postgres") await createAgain(new URL(url).pathname.slice(1), encoding);
    const database = inspect(url);
    if (engine === "mysql") {
      await database.migrate();
      await database.knex.raw(`alter table links modify title varchar(255) character set ${encoding}`);
    }
    for (const refused of [database.migrate, database.assertEncoding])
      await t.throwsAsync(refused(), { name: "UnsupportedEncoding", message: messageAbout(encoding) });
  });

async function createAgain(name: string, encoding: string) {
  const admin = openDatabase(serverOf("postgres") as string);
  await admin.knex.raw(`drop database ${name}`);
  const locale = "lc_collate 'C' lc_ctype 'C'";
  await admin.knex.raw(`create database ${name} encoding '${encoding}' ${locale} template template0`);
  await admin.close();
}

if (engine === "mysql")
  test("MariaDB: titles may use any script, regardless of the server's default character set", async (t) => {
    const { first, second, database } = await openEmpty();
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
