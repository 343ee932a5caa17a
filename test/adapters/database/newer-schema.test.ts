import { randomBytes } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import { copyDatabase } from "../../../adapters/copy/index.ts";
import type { Engine } from "../../../adapters/database/engine.ts";
import { openDatabase } from "../../../adapters/database/index.ts";
import { MIGRATIONS, migrations } from "../../../adapters/database/migrations/index.ts";
import type { Migration } from "../../../adapters/database/migrations/migration.ts";
import manifest from "../../../package.json" with { type: "json" };
import { ADDITIVE } from "../../harness/database/additive-migration.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { addressOf, endingOf, runCommand, startServer, stopPrograms } from "../../harness/program.ts";

export const databases = "all";
export const stage = "processes";

test.after.always(stopPrograms);

const NEWEST_KNOWN = String(MIGRATIONS.at(-1)?.name);

/** Drops a column that this version writes to. */
const INCOMPATIBLE: Migration = {
  name: "9000_no_titles",
  changes: "Removes the titles of links.",
  rewrites: () => [],
  oldestCompatible: null,
  up: (knex) => knex.schema.alterTable("links", (table) => table.dropColumn("title")),
};

/** Creates a database that a newer version has migrated. */
async function createNewer(t: ExecutionContext, ...added: Migration[]) {
  const { url, drop } = await createTestDatabase({ empty: true });
  const database = openDatabase(url);
  t.teardown(() => database.close().then(drop));
  const migrationSource = migrations(engine as Engine, [...MIGRATIONS, ...added]);
  await database.knex.migrate.latest({ migrationSource, disableTransactions: engine === "mysql" });
  const ENCRYPTION_KEY = randomBytes(32).toString("base64url");
  const settings = { DATABASE_URL: url, ENCRYPTION_KEY, PORT: "0", LOG_LEVEL: "warn", DEMO: "on" };
  return { database, settings };
}

async function checkMigrations(settings: Record<string, string>) {
  const { stdout } = await runCommand(["doctor", "--json"], { settings });
  return JSON.parse(stdout).checks.find(({ name }: { name: string }) => name === "migrations");
}

test("a version starts on a newer schema that states that it can", async (t) => {
  const { database, settings } = await createNewer(t, ADDITIVE);
  const before = await database.knex("knex_migrations").orderBy("id");
  for (const WORKERS of ["1", "2"]) {
    const server = startServer({ settings: { ...settings, WORKERS } });
    const address = await addressOf(server);
    t.is((await fetch(`${address}/readyz`)).status, 200);
    t.is((await server.stop()).code, 0);
    t.is(server.stdout.match(/"newer":\["9001_notes"\].*this version can use it/g)?.length, 1, server.stdout);
  }
  t.deepEqual(await database.knex("knex_migrations").orderBy("id"), before);
  t.deepEqual(await checkMigrations(settings), {
    name: "migrations",
    ok: true,
    detail: "newer than this version, which can use it: 9001_notes",
  });
});

test("a version refuses a newer schema that it can't use, and names both", async (t) => {
  // Compatible with the version before, but not with the one before that.
  const next: Migration = { ...ADDITIVE, name: "9002_next", oldestCompatible: INCOMPATIBLE.name };
  for (const added of [[INCOMPATIBLE, ADDITIVE], [next]]) {
    const { settings } = await createNewer(t, ...added);
    const sentence = `The database is at schema ${added.at(-1)?.name} of linkgate ${manifest.version}, but this is linkgate ${manifest.version}, which can't use schemas after ${NEWEST_KNOWN}. Start the newer version, or restore a backup from before the upgrade.`;
    t.deepEqual(await endingOf(startServer({ settings })), {
      code: 1,
      signal: null,
      stdout: "",
      stderr: `${sentence}\n`,
    });
    const list = await runCommand(["org", "list"], { settings });
    t.deepEqual([list.code, list.stderr], [1, `${sentence}\n`]);
    t.deepEqual(await checkMigrations(settings), { name: "migrations", ok: false, detail: sentence });
  }
});

test("a newer schema that states nothing is refused", async (t) => {
  const { database, settings } = await createNewer(t);
  await database
    .knex("knex_migrations")
    .insert({ name: "9003_silent", batch: 9, migration_time: new Date() });
  const { code, stderr } = await endingOf(startServer({ settings }));
  t.is(code, 1);
  t.regex(
    stderr,
    /^The database is at schema 9003_silent of a newer version of linkgate, but this is linkgate /,
  );
});

test("a database with a newer schema isn't copied, even if this version can use it", async (t) => {
  const { settings } = await createNewer(t, ADDITIVE);
  const target = await createTestDatabase({ empty: true, on: "sqlite" });
  t.teardown(target.drop);
  const options = {
    onTable() {},
    run: { command: "copy", arguments: [], options: {}, osUser: "test", host: "test" },
  };
  const copying = copyDatabase(settings.DATABASE_URL, target.url, options);
  t.like(await t.throwsAsync(copying), { code: "newer_source" });
});

test("the newer version, started again after a roll-back, has nothing to migrate", async (t) => {
  const { database, settings } = await createNewer(t, ADDITIVE);
  const server = startServer({ settings });
  await addressOf(server);
  await server.stop();
  const migrationSource = migrations(engine as Engine, [...MIGRATIONS, ADDITIVE]);
  const [, applied] = await database.knex.migrate.latest({ migrationSource });
  t.deepEqual(applied, []);
});

test("a migration that died after it was recorded as compatible is repeated", async (t) => {
  const { database } = await createNewer(t, ADDITIVE);
  const recorded = () => database.knex("schema_compatibility").orderBy("migration");
  const before = await recorded();
  await database.knex("knex_migrations").where({ name: ADDITIVE.name }).delete();
  const migrationSource = migrations(engine as Engine, [...MIGRATIONS, { ...ADDITIVE, up: async () => {} }]);
  const [, applied] = await database.knex.migrate.latest({ migrationSource });
  t.deepEqual(applied, [ADDITIVE.name]);
  t.deepEqual(await recorded(), before);
});
