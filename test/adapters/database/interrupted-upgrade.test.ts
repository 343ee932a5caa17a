import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { type Database, openDatabase } from "../../../adapters/database/index.ts";
import { MIGRATIONS, migrations } from "../../../adapters/database/migrations/index.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";

// The processes that migrate die here: the database is real, and each of their statements is the last one once.

// Migrations of version 0.2 and earlier can't be repeated.
const PREVIOUS_VERSION = MIGRATIONS.slice(0, 4);

const AT = { created_at: 1, updated_at: 1 };

/** What the migrations change besides the schema: webhooks, their audit entries, and links that are counted. */
const ROWS: Record<string, object[]> = {
  organizations: ["org_1", "org_2", "org_3"].map((id) => ({ id, name: id, plan: "growth", ...AT })),
  links: ["lnk_1", "lnk_2", "lnk_3", "lnk_4"].map((id, index) => ({
    id,
    organization_id: index === 3 ? "org_2" : "org_1",
    slug: id,
    url: "https://example.com/é",
    title: null,
    tags: "[]",
    metadata: "{}",
    redirect_type: 302,
    created_by: "usr_1",
    deleted_at: index === 2 ? 1 : null,
    ...AT,
  })),
  webhooks: ["https://a.example/same", "https://a.example/same", "not a URL"].map((url, index) => ({
    id: `whk_${index}`,
    organization_id: "org_1",
    url,
    events: "link.created",
    enabled: true,
    secret: "encrypted",
    ...AT,
  })),
  events: ["webhook.created", "webhook.updated", "link.created"].map((type, index) => ({
    id: `evt_${index}`,
    organization_id: "org_1",
    audited: true,
    type,
    actor: "operator",
    data: JSON.stringify({ url: "https://a.example/token?secret" }),
    created_at: 1,
    expires_at: 2,
  })),
};

/** Creates a database as the previous version left it. */
async function createPrevious(): Promise<Database & { url: string; drop(): Promise<void> }> {
  const { url, drop } = await createTestDatabase({ empty: true });
  const database = openDatabase(url);
  const { knex, engine, close } = database;
  const migrationSource = { ...migrations(engine), getMigrations: async () => PREVIOUS_VERSION };
  await knex.migrate.latest({ migrationSource, disableTransactions: engine === "mysql" });
  for (const [table, rows] of Object.entries(ROWS)) await knex(table).insert(rows);
  return { ...database, url, drop: () => close().then(drop) };
}

type Statement = { sql: string; bindings?: unknown[] };

/** Whether a process may die after a statement: on SQLite, an upgrade is one transaction. */
function isLast({ engine }: Database, { sql }: Statement): boolean {
  return engine === "sqlite"
    ? /^insert into .knex_migrations. /i.test(sql)
    : !/^\s*(select|show|set|begin|commit)\b/i.test(sql);
}

/** Migrates again and again: each process dies after the first statement that no other one has died after. */
async function migrateWithDeaths(database: Database): Promise<string[]> {
  const { knex } = database;
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
    await database.migrate().catch((error) => {
      if (isAlive) throw new Error(`after ${[...deaths].at(-1)}: ${error}`);
    });
  } while (!isAlive);
  knex.off("query-response", die);
  return [...deaths];
}

const SCHEMA: Record<Database["engine"], string[]> = {
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
  ],
};

/** Returns the schema and every row that the upgrade touches. */
async function contentOf({ knex, engine }: Database): Promise<unknown[]> {
  const results = [];
  for (const query of SCHEMA[engine]) results.push(await knex.raw(query));
  const schema = results.map((result) =>
    engine === "postgres" ? result.rows : engine === "mysql" ? result[0] : result,
  );
  const rows = [];
  for (const table of Object.keys(ROWS)) rows.push(await knex(table).orderBy("id"));
  const usage = await knex("organization_usage").orderBy(["organization_id", "slot"]);
  return [...schema, ...rows, usage];
}

test("an upgrade whose process dies after any of its changes is completed by the next one", async (t) => {
  const [interrupted, upgraded] = [await createPrevious(), await createPrevious()];
  t.teardown(interrupted.drop);
  t.teardown(upgraded.drop);
  await upgraded.migrate();
  const deaths = await migrateWithDeaths(interrupted);
  for (const { name } of MIGRATIONS.slice(PREVIOUS_VERSION.length)) {
    t.true(
      deaths.some((statement) => statement.includes(name)),
      name,
    );
  }
  t.deepEqual(await interrupted.pendingMigrations(), []);
  t.deepEqual(await contentOf(interrupted), await contentOf(upgraded));
});

if (engine !== "sqlite") {
  test("an upgrade completes beside the transactions of the previous version", async (t) => {
    const { url, drop, ...database } = await createPrevious();
    t.teardown(drop);
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
      use("webhooks", "organizations"),
      use("webhooks", "links", "organizations"),
      use("links", "clients", "users", "organizations"),
      use("invitations", "one_time_links", "users"),
      use("events", "deliveries", "webhooks"),
    ]);
    const applied = await database.migrate().finally(() => {
      isMigrating = false;
    });
    t.is(applied.length, MIGRATIONS.length - PREVIOUS_VERSION.length);
    await inUse;
  });
}
