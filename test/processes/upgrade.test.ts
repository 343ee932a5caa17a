import { randomBytes } from "node:crypto";
import test from "ava";
import type { Knex } from "knex";
import type { Engine } from "../../adapters/database/engine.ts";
import { openDatabase } from "../../adapters/database/index.ts";
import { MIGRATIONS, migrations } from "../../adapters/database/migrations/index.ts";
import { openStorage } from "../../adapters/index.ts";
import manifest from "../../package.json" with { type: "json" };
import { apiAt } from "../harness/clients/api.ts";
import { forgetContract } from "../harness/clients/contract.ts";
import { createApp, isAcceptedByApi, refresh } from "../harness/clients/oauth.ts";
import { ADDITIVE, REWRITING } from "../harness/database/additive-migration.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { freePort } from "../harness/port.ts";
import { addressOf, resultOf, runCommand, startServer, stopPrograms } from "../harness/program.ts";
import { startReceiver } from "../harness/receiver.ts";
import { NEWER, serviceAt } from "../harness/two-versions.ts";
import { startUpgradeLoad } from "../harness/upgrade-load.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

test.after.always(stopPrograms);

type Report = {
  version: string;
  database: { version: string; schema: string };
  pending: {
    name: string;
    changes: string;
    tables: { name: string; rows: number }[];
    seconds: number;
    blocked_writes: string;
  }[];
  seconds: number;
  previous_version_works: boolean;
};

const CHECK = ["upgrade", "--check"];
const check = (settings: Record<string, string>) => resultOf<Report>(CHECK, { settings });

/** Resolves to the tables with their columns, and the applied migrations. */
async function readSchema({ knex }: ReturnType<typeof openDatabase>): Promise<unknown> {
  const schema = engine === "mysql" ? "database()" : "current_schema()";
  const columns = await knex.raw(
    engine === "sqlite"
      ? "select name, sql from sqlite_schema order by name"
      : `select table_name, column_name, data_type from information_schema.columns
          where table_schema = ${schema} order by 1, 2`,
  );
  const rows = columns.rows ?? columns;
  return { rows, applied: await knex("knex_migrations"), versions: await knex("schema_compatibility") };
}

test.serial("a server is upgraded in place under load, as the check said, and nothing is lost", async (t) => {
  const { url: DATABASE_URL, drop } = await createTestDatabase({ empty: true });
  const key = randomBytes(32);
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const settings = {
    DATABASE_URL,
    ENCRYPTION_KEY: key.toString("base64url"),
    PORT: String(port),
    RATE_LIMIT: "off",
    LOG_LEVEL: "error",
    WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
  };
  const newer = { ...settings, ...NEWER };
  const old = startServer({ settings });
  await addressOf(old);
  const storage = openStorage(DATABASE_URL, key);
  const database = openDatabase(DATABASE_URL);
  const receiver = await startReceiver();
  t.teardown(async () => {
    await Promise.all([storage.close(), database.close(), receiver.close()]);
    await drop();
  });

  const service = serviceAt(url, storage);
  const { app, user } = await createApp(service);
  const webhook = { url: receiver.url("/hook"), events: ["link.created"] };
  const api = apiAt(url, await service.token(app));
  t.is((await api.send("POST", "/v1/webhooks", { json: webhook })).status, 201);
  let restart: PromiseWithResolvers<void> | undefined;
  const load = startUpgradeLoad(
    { both: service },
    { app, user },
    () => [service],
    () => restart?.promise,
  );
  t.teardown(load.stop);
  await load.rounds(15);

  const schema = await readSchema(database);
  const plan = await check(newer);
  t.deepEqual(await readSchema(database), schema);
  t.log(plan.pending.map(({ name, tables }) => [name, ...tables.map(({ rows }) => rows)].join(" ")));
  const applied = await database.knex("knex_migrations").orderBy("id").pluck("name");
  t.is(plan.database.schema, applied.at(-1));
  t.true(plan.previous_version_works);
  for (const { tables } of plan.pending) t.true(tables.every(({ rows }) => rows > 0));

  restart = Promise.withResolvers();
  const { code, stdout, stderr } = await old.stop();
  t.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  t.notRegex(stdout, /"level"/, "no error is logged");
  const current = startServer({ settings: newer });
  await addressOf(current);
  forgetContract(url);
  restart.resolve();
  restart = undefined;
  await load.rounds(30);
  await load.stop();
  t.deepEqual(load.failures, []);
  t.log(`${load.links.size} links, ${load.tokens.length} access tokens, ${load.refreshTokens.length} grants`);

  const now = await database.knex("knex_migrations").orderBy("id").pluck("name");
  t.deepEqual(now, [...applied, ...plan.pending.map(({ name }) => name)]);
  t.like(await check(newer), { database: { schema: ADDITIVE.name }, pending: [] });
  for (const token of load.tokens) t.true(await isAcceptedByApi(service, token));
  for (const token of load.refreshTokens) t.is((await refresh(service, app, token)).status, 200);
  await until(async () => {
    const sent = new Set(receiver.received("/hook").map(({ body }) => body.data.id));
    return [...load.links.keys()].every((id) => sent.has(id)) || undefined;
  });
  t.notRegex((await current.stop()).stdout, /"level"/, "no error is logged");
  const links = await database
    .knex("links")
    .where({ organization_id: app.id })
    .select("id", "slug", "clicks");
  const stored = new Map(links.map((link) => [link.id, link]));
  for (const [id, slug] of load.links) {
    t.is(stored.get(id)?.slug, slug);
    // Of a redirect whose connection failed, the click may be counted.
    if (load.redirected.has(id)) t.is(stored.get(id)?.clicks, 1);
  }
  t.true((await storage.verifyAuditLogs()).every(({ ok }) => ok));

  const rolledBack = startServer({ settings });
  await addressOf(rolledBack);
  for (const token of load.tokens) t.true(await isAcceptedByApi(service, token));
  t.is((await rolledBack.stop()).code, 0);
});

/** Stores as many deliveries. */
async function storeDeliveries(knex: Knex, count: number) {
  const digit = `(${Array.from({ length: 10 }, (_, n) => `select '${n}' as n`).join(" union all ")})`;
  const digits = Array.from({ length: String(count - 1).length }, (_, n) => `${digit} as d${n}`);
  const id = `concat('evt_', ${digits.map((_, n) => `d${n}.n`).join(", ")})`;
  await knex.raw(`insert into deliveries (webhook_id, event_id, type, status, log, created_at, expires_at)
    select 'whk_1', ${id}, 'link.created', 'failed', '[]', 1, 1 from ${digits.join(", ")} limit ${count}`);
}

test("upgrade --check says what each migration changes, how long it may take, and who waits", async (t) => {
  const { url: DATABASE_URL, drop } = await createTestDatabase();
  const { knex, migrate, close } = openDatabase(DATABASE_URL, { timeoutMs: 60_000 });
  t.teardown(() => close().then(drop));
  const settings = { DATABASE_URL, ENCRYPTION_KEY: randomBytes(32).toString("base64url"), ...NEWER };
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
  t.deepEqual(report, {
    version: manifest.version,
    database: { version: manifest.version, schema: "0007_webhooks" },
    seconds,
    previous_version_works: true,
  });
  const { stdout } = await runCommand(CHECK, { settings });
  t.log(stdout);
  t.true(stdout.includes(`${name}: ${changes}\n  ${rows.toLocaleString("en")} rows of deliveries change.`));
  t.regex(stdout, / It takes about \d+ seconds\. (All writes|Writes to this table) wait until then\.\n/);
  t.regex(stdout, /you can restart one server after the other, and roll back without a backup\.\n/);
});

test("upgrade --check says that the previous version can't use the new schema", async (t) => {
  const { url: DATABASE_URL, drop } = await createTestDatabase({ empty: true });
  const database = openDatabase(DATABASE_URL);
  t.teardown(() => database.close().then(drop));
  const migrationSource = migrations(engine as Engine, MIGRATIONS.slice(0, -1));
  await database.knex.migrate.latest({ migrationSource, disableTransactions: engine === "mysql" });
  const settings = { DATABASE_URL, ENCRYPTION_KEY: randomBytes(32).toString("base64url") };
  t.false((await check(settings)).previous_version_works);
  const { stdout } = await runCommand(CHECK, { settings });
  t.regex(stdout, /stop all servers first\. To roll back, you need the backup\.\n/);
});

test("upgrade --check says that nothing is pending", async (t) => {
  const { url, drop } = await createTestDatabase();
  t.teardown(drop);
  const settings = { DATABASE_URL: url, ENCRYPTION_KEY: randomBytes(32).toString("base64url") };
  await runCommand(["migrate"], { settings });
  t.deepEqual((await check(settings)).pending, []);
  t.regex((await runCommand(CHECK, { settings })).stdout, /\nThe database is up to date\.\n$/);
});

test("upgrade needs --check, and a database", async (t) => {
  const { url, drop } = await createTestDatabase({ empty: true });
  t.teardown(drop);
  const settings = { DATABASE_URL: url };
  for (const [words, code] of [
    [["upgrade"], engine === "sqlite" ? "no_database" : "usage"],
    [CHECK, "no_database"],
  ] as const) {
    const { stderr } = await runCommand([...words, "--json"], { settings });
    t.is(JSON.parse(stderr).error.code, code);
  }
});
