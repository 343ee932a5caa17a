import test from "ava";
import type { Knex } from "knex";
import { copyDatabase } from "../../adapters/copy/index.ts";
import type { Engine } from "../../adapters/database/engine.ts";
import { MIGRATIONS, migrations } from "../../adapters/database/migrations/index.ts";
import type { Migration } from "../../adapters/database/migrations/migration.ts";
import type { PlannedMigration } from "../../adapters/database/migrations/plan.ts";
import manifest from "../../package.json" with { type: "json" };
import { apiAt, type LinkBody } from "../harness/clients/api.ts";
import { runCodeFlow } from "../harness/clients/authorization.ts";
import { createApp } from "../harness/clients/authorization-request.ts";
import { forgetContract } from "../harness/clients/contract.ts";
import { isAcceptedByApi, refresh } from "../harness/clients/oauth.ts";
import { ADDITIVE, REWRITING } from "../harness/database/additive-migration.ts";
import { createTestDatabase, engine, inspect } from "../harness/database/test-database.ts";
import { prepareServers } from "../harness/new-server.ts";
import { addressOf, endingOf, freePort, resultOf, runCommand } from "../harness/program.ts";
import type { TestOrganization } from "../harness/service.ts";
import { testOnce } from "../harness/test-once.ts";
import { NEWER, serviceAt } from "../harness/two-versions.ts";

export const databases = "all";

type Report = {
  version: string;
  database: { version: string; schema: string };
  pending: (PlannedMigration & { blocked_writes: string })[];
  seconds: number;
  previous_version_works: boolean;
};

const CHECK = ["upgrade", "--check"];
const check = (settings: Record<string, string>) => resultOf<Report>(CHECK, { settings });

// What the migrations of the newer version change.
const CHANGED = ["deliveries", "links", "tokens", "grants", "organizations", "link_notes"];

/** Resolves to the columns of these tables, and the applied migrations. */
async function readSchema({ knex }: ReturnType<typeof inspect>): Promise<unknown> {
  const columns = await Promise.all(CHANGED.map((table) => knex(table).columnInfo()));
  return [columns, await knex("knex_migrations"), await knex("schema_compatibility")];
}

test.serial("a server is upgraded as the check said, loses nothing, and can be rolled back", async (t) => {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const changes = { PORT: String(port), LOG_LEVEL: "error" };
  const { settings, storage, start } = await prepareServers(changes, { empty: true });
  const newer = { ...settings, ...NEWER };
  const database = inspect(settings.DATABASE_URL);
  const service = serviceAt(url, storage);

  async function runVersion(version: Record<string, string>, use: () => Promise<void>) {
    const { server } = await start(version);
    forgetContract(url);
    await use();
    const { stdout, ...ending } = await server.stop();
    t.like(ending, { code: 0, stderr: "" });
    t.notRegex(stdout, /"level"/);
  }

  const links: LinkBody[] = [];
  const tokens: string[] = [];
  const grants: [TestOrganization, string][] = [];
  const useAll = async () => {
    for (const token of tokens) t.true(await isAcceptedByApi(service, token));
    for (const grant of grants) t.is((await refresh(service, ...grant)).status, 200);
    for (const { slug } of links) t.is((await apiAt(url).get(`/${slug}`)).status, 302);
  };
  const createMore = async () => {
    const { app, user } = await createApp(service);
    const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
    const token = await service.token(app);
    tokens.push(token, accessToken);
    grants.push([app, refreshToken]);
    links.push(await apiAt(url, token).createLink());
  };
  const appliedNow = () => database.knex("knex_migrations").orderBy("id").pluck("name");

  await runVersion({}, createMore);
  const schema = await readSchema(database);
  const plan = await check(newer);
  t.deepEqual(await readSchema(database), schema);
  const applied = await appliedNow();
  t.is(plan.database.schema, applied.at(-1));
  t.true(plan.previous_version_works);

  await runVersion(NEWER, async () => {
    await useAll();
    await createMore();
  });
  t.deepEqual(await appliedNow(), [...applied, ...plan.pending.map(({ name }) => name)]);
  t.like(await check(newer), { database: { schema: ADDITIVE.name }, pending: [] });
  await runVersion({}, useAll);
  for (const [index, { id }] of links.entries()) {
    const stored = await database.knex("links").where({ id }).first();
    t.is(stored?.clicks, 2 - index);
  }
  t.true((await storage.verifyAuditLogs()).every(({ ok }) => ok));
});

async function storeDeliveries(knex: Knex, count: number) {
  const digit = `(${Array.from({ length: 10 }, (_, n) => `select '${n}' as n`).join(" union all ")})`;
  const digits = Array.from({ length: String(count - 1).length }, (_, n) => `${digit} as d${n}`);
  const id = `concat('evt_', ${digits.map((_, n) => `d${n}.n`).join(", ")})`;
  await knex.raw(`insert into deliveries (webhook_id, event_id, type, status, log, created_at, expires_at)
    select 'whk_1', ${id}, 'link.created', 'failed', '[]', 1, 1 from ${digits.join(", ")} limit ${count}`);
}

test("upgrade --check says what each migration changes, how long it may take, and who waits", async (t) => {
  const { settings } = await prepareServers(NEWER);
  const { knex, migrate } = inspect(settings.DATABASE_URL, { timeoutMs: 60_000 });
  await migrate();
  await storeDeliveries(knex, 200_000);
  if (engine !== "sqlite")
    await knex.raw(engine === "mysql" ? "analyze table deliveries" : "analyze deliveries");
  const { pending, ...report } = await check(settings);
  const [{ tables, seconds, ...first } = undefined as never, second] = pending;
  t.is(pending.length, 2);
  const { name, changes } = REWRITING;
  t.deepEqual(first, { name, changes, blocked_writes: engine === "sqlite" ? "all" : "tables" });
  t.is(tables[0]?.name, "deliveries");
  const rows = Number(tables[0]?.rows);
  t.true(rows > 100_000 && rows < 300_000, `${rows} rows`);
  t.true(seconds > 0);
  t.like(second, { name: ADDITIVE.name, tables: [], seconds: 0, blocked_writes: "none" });
  const { version } = manifest;
  const database = { version, schema: "0007_webhooks" };
  t.deepEqual(report, { version, database, seconds, previous_version_works: true });
  const { stdout } = await runCommand(CHECK, { settings });
  t.log(stdout);
  t.true(stdout.includes(`${name}: ${changes}\n  ${rows.toLocaleString("en")} rows of deliveries change.`));
  t.regex(stdout, / It takes about \d+ seconds\. (All writes|Writes to this table) wait until then\.\n/);
  t.regex(stdout, /you can restart one server after the other, and roll back without a backup\.\n/);
});

testOnce("upgrade --check says that the previous version can't use the new schema", async (t) => {
  const { settings } = await createMigrated(MIGRATIONS.slice(0, -1));
  t.false((await check(settings)).previous_version_works);
  const { stdout } = await runCommand(CHECK, { settings });
  t.regex(stdout, /stop all servers first\. To roll back, you need the backup\.\n/);
});

const NEWEST_KNOWN = String(MIGRATIONS.at(-1)?.name);

const INCOMPATIBLE: Migration = {
  name: "9000_no_titles",
  changes: "Removes the titles of links.",
  rewrites: () => [],
  oldestCompatible: null,
  up: (knex) => knex.schema.alterTable("links", (table) => table.dropColumn("title")),
};

async function createMigrated(all: Migration[]) {
  const changes = { LOG_LEVEL: "warn", DEMO: "on" };
  const { settings, launch } = await prepareServers(changes, { empty: true });
  const { knex } = inspect(settings.DATABASE_URL);
  await migrate(knex, all);
  return { knex, launch, settings };
}

/** Migrates a database as a version with these migrations does. Returns the names of those that were applied. */
async function migrate(knex: Knex, all: Migration[]): Promise<string[]> {
  const migrationSource = migrations(engine as Engine, all);
  const [, applied] = await knex.migrate.latest({ migrationSource, disableTransactions: engine === "mysql" });
  return applied;
}

async function checkMigrations(settings: Record<string, string>) {
  const { stdout } = await runCommand(["doctor", "--json"], { settings });
  return JSON.parse(stdout).checks.find(({ name }: { name: string }) => name === "migrations");
}

testOnce("a version starts on a newer schema that states that it can", async (t) => {
  const { knex, launch, settings } = await createMigrated([...MIGRATIONS, ADDITIVE]);
  const before = await knex("knex_migrations").orderBy("id");
  const server = launch({ WORKERS: "2" });
  const address = await addressOf(server);
  t.is((await fetch(`${address}/readyz`)).status, 200);
  t.is((await server.stop()).code, 0);
  t.is(server.stdout.match(/"newer":\["9001_notes"\].*this version can use it/g)?.length, 1, server.stdout);
  t.deepEqual(await knex("knex_migrations").orderBy("id"), before);
  const detail = "newer than this version, which can use it: 9001_notes";
  t.deepEqual(await checkMigrations(settings), { name: "migrations", ok: true, detail });
  // The newer version, started again after a roll-back, has nothing to migrate.
  t.deepEqual(await migrate(knex, [...MIGRATIONS, ADDITIVE]), []);
});

testOnce("a version refuses a newer schema that it can't use, and names both", async (t) => {
  // Compatible with the version before, but not with the one before that.
  const next: Migration = { ...ADDITIVE, name: "9002_next", oldestCompatible: INCOMPATIBLE.name };
  for (const added of [[INCOMPATIBLE, ADDITIVE], [next]]) {
    const { launch, settings } = await createMigrated([...MIGRATIONS, ...added]);
    const sentence = `The database is at schema ${added.at(-1)?.name} of linkgate ${manifest.version}, but this is linkgate ${manifest.version}, which can't use schemas after ${NEWEST_KNOWN}. Start the newer version, or restore a backup from before the upgrade.`;
    const refused = { code: 1, signal: null, stdout: "", stderr: `${sentence}\n` };
    t.deepEqual(await endingOf(launch()), refused);
    t.deepEqual(await runCommand(["org", "list"], { settings }), refused);
    t.deepEqual(await checkMigrations(settings), { name: "migrations", ok: false, detail: sentence });
  }
});

testOnce("a newer schema that states nothing is refused", async (t) => {
  const { knex, launch, settings } = await createMigrated(MIGRATIONS);
  await knex("knex_migrations").insert({ name: "9003_silent", batch: 9, migration_time: new Date() });
  const { code, stderr } = await endingOf(launch());
  t.is(code, 1);
  const sentence = "The database is at schema 9003_silent of a newer version of linkgate, but this is ";
  t.true(stderr.startsWith(sentence), stderr);
  t.deepEqual(await checkMigrations(settings), { name: "migrations", ok: false, detail: stderr.trim() });
});

test("a database with a newer schema isn't copied, even if this version can use it", async (t) => {
  const { settings } = await createMigrated([...MIGRATIONS, ADDITIVE]);
  const target = await createTestDatabase({ empty: true, on: "sqlite" });
  const run = { command: "copy", arguments: [], options: {}, osUser: "test", host: "test" };
  const copying = copyDatabase(settings.DATABASE_URL, target.url, { onTable() {}, run });
  t.like(await t.throwsAsync(copying), { code: "newer_source" });
});

test("a migration that died after it was recorded as compatible is repeated", async (t) => {
  const { knex } = await createMigrated([...MIGRATIONS, ADDITIVE]);
  const recorded = () => knex("schema_compatibility").orderBy("migration");
  const before = await recorded();
  await knex("knex_migrations").where({ name: ADDITIVE.name }).delete();
  const empty = { ...ADDITIVE, up: async () => {} };
  t.deepEqual(await migrate(knex, [...MIGRATIONS, empty]), [ADDITIVE.name]);
  t.deepEqual(await recorded(), before);
});
