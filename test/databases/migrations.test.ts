import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { type Engine, rowsOf } from "../../adapters/database/engine.ts";
import { type Database, openDatabase } from "../../adapters/database/index.ts";
import { MIGRATIONS, migrate, migrations } from "../../adapters/database/migrations/index.ts";
import { ADDITIVE } from "../harness/database/additive-migration.ts";
import { createTestDatabase, engine, serverOf } from "../harness/database/test-database.ts";

export const databases = "all";

// The processes that migrate die here: the database is real, and each of their statements is the last one once.

async function createEmpty(): Promise<Database & { url: string; drop(): Promise<void> }> {
  const { url, drop } = await createTestDatabase({ empty: true });
  const database = openDatabase(url);
  return { ...database, url, drop: () => database.close().then(drop) };
}

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
  const [interrupted, complete] = [await createEmpty(), await createEmpty()];
  t.teardown(interrupted.drop);
  t.teardown(complete.drop);
  await complete.migrate();
  const deaths = await migrateWithDeaths(interrupted);
  for (const { name } of MIGRATIONS) t.true(deaths.join("\n").includes(name), name);
  t.deepEqual(await interrupted.pendingMigrations(), []);
  t.deepEqual(await schemaOf(interrupted), await schemaOf(complete));
});

if (engine !== "sqlite")
  test("an upgrade completes beside the transactions of the previous version", async (t) => {
    const { url, drop, knex, migrate } = await createEmpty();
    t.teardown(drop);
    await migrate();
    const previous = openDatabase(url);
    t.teardown(previous.close);
    let isMigrating = true;
    const use = async (...tables: string[]) => {
      while (isMigrating) {
        await previous.transaction(async (trx) => {
          for (const table of tables) {
            await trx(table).first();
            await pause(5);
          }
        });
      }
    };
    const inUse = Promise.all([
      use("grants", "organizations"),
      use("grants", "links", "organizations"),
      use("organizations", "tokens", "grants", "links"),
      use("tokens", "links"),
      use("links", "deliveries", "grants"),
    ]);
    const migrationSource = migrations(engine as Engine, [...MIGRATIONS, ADDITIVE]);
    const [, applied] = await knex.migrate
      .latest({ migrationSource, disableTransactions: engine === "mysql" })
      .finally(() => {
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
    const { url, drop } = await createTestDatabase({ empty: true });
    t.teardown(drop);
    if (engine === "postgres") await createAgain(new URL(url).pathname.slice(1), encoding);
    const database = openDatabase(url);
    t.teardown(database.close);
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
