import test from "ava";
import { COPIED } from "../../adapters/copy/index.ts";
import { rowsOf } from "../../adapters/database/engine.ts";
import { openDatabase } from "../../adapters/database/index.ts";
import { sourceOfCopy } from "../../adapters/database/migrations/index.ts";
import { storeManyLinks } from "../harness/database/many-links.ts";
import { createTestDatabase, engine, inspect, serverOf } from "../harness/database/test-database.ts";
import { inhabit, settingsFor } from "../harness/inhabited.ts";
import { endingOf, runCommand, startCommand, startServer } from "../harness/program.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

const PASSWORD = /:([^:@/]+)@/;
// Each pair once: a copy of the copy goes back to the first engine.
const PAIRS: Record<string, string[]> = { sqlite: ["postgres", "mysql"], postgres: ["mysql"] };
const others = (PAIRS[engine] ?? []).filter((name) => serverOf(name));
const source = await createTestDatabase({ empty: true });
const settings = await settingsFor(source.url);
const on = (url: string) => ({ settings: { ...settings, DATABASE_URL: url, PORT: "0" } });
const inhabited = await inhabit(settings);
const database = openDatabase(source.url);
const LINKS = 10_000;
await storeManyLinks(database.knex, inhabited.app.id, LINKS, () => ({}));
await database.close();
// Its copy takes no time.
const small = await createTestDatabase({ empty: true });
await runCommand(["org", "create", "Acme"], on(small.url));

const words = (to: string, from = source.url) => ["copy", "--from", from, "--to", to, "--json"];
async function copy(to: string, from?: string) {
  const { code, stdout, stderr } = await runCommand(words(to, from), {});
  return JSON.parse(code === 0 ? stdout : stderr);
}

for (const other of others) {
  test.serial(`a copy on ${other} accepts every token, secret, cookie and link of the source`, async (t) => {
    const target = await createTestDatabase({ empty: true, on: other });
    const result = await copy(target.url);
    t.is(result.error, undefined);
    t.is(result.tables.find(({ name }: { name: string }) => name === "links").rows, LINKS + 1);
    const [, password] = PASSWORD.exec(target.url) ?? [];
    if (password) t.false(JSON.stringify([result.from, result.to]).includes(`:${password}@`));
    // As after a kill when everything was done: nothing is copied twice.
    t.is((await copy(target.url)).error, undefined);
    await inhabited.useAll(t, { DATABASE_URL: target.url });
    const { stdout } = await runCommand(["audit", "operator", "--json"], on(target.url));
    t.like(JSON.parse(stdout).commands[0], { command: "copy", outcome: "succeeded" });
    await runCommand(["org", "create", "Later"], on(target.url));
    t.is((await copy(target.url)).error.code, "not_empty");
    // A copy of the copy, back on the first engine, is the source with what was done meanwhile.
    const back = await createTestDatabase({ empty: true });
    t.is((await copy(back.url, target.url)).error, undefined);
    await back.drop();
  });

  test.serial(`a killed copy to ${other} continues where it stopped, and notices changes`, async (t) => {
    const target = await createTestDatabase({ empty: true, on: other });
    const command = startCommand(words(target.url).slice(0, -1));
    await command.says(/copied leases/, "stderr");
    const inspected = openDatabase(target.url);
    const copiedLinks = async () => {
      const progress = await inspected.knex.raw("select rows_copied from copy_progress where name = 'links'");
      return Number(rowsOf<{ rows_copied: number }>(progress)[0]?.rows_copied ?? 0);
    };
    await until(async () => (await copiedLinks()) > 0 || undefined);
    command.kill("SIGKILL");
    t.is((await command.ended).signal, "SIGKILL");
    const before = await copiedLinks();
    t.true(before > 0 && before < LINKS);
    t.is((await inspected.knex("links")).length, before);
    await inspected.close();

    t.is((await copy(target.url, small.url)).error.code, "other_source");

    // What changes behind the copy is noticed: keys are copied before links.
    const changing = openDatabase(source.url);
    t.true((await changing.knex("sealed_keys").increment("version", 1)) > 0);
    t.regex((await copy(target.url)).error.message, /^sealed_keys differs: /);
    await changing.knex("sealed_keys").decrement("version", 1);
    await changing.close();

    const result = await copy(target.url);
    t.is(result.error, undefined);
    t.is(result.tables.find(({ name }: { name: string }) => name === "links").rows, LINKS + 1);
  });
}

// The statements after which a copy is killed, in the order of the copy, and whether the target is then marked as
// unfinished.
const STEPS: Record<string, [statement: RegExp, isMarked: boolean]> = {
  "its progress table is created": [/^create table .copy_progress/, false],
  "it is marked": [/^insert into .copy_progress/, true],
  "a table is extended": [/^alter table .webhooks/, true],
  "the first rows are copied": [/^update .copy_progress/, true],
  "its end is recorded": [/^delete from .copy_progress/, true],
  "everything is done": [/^drop table if exists .copy_progress/, false],
};
const MARKED = "the first rows are copied";

// What happens in a target doesn't depend on where the rows come from.
const targets = engine === "sqlite" ? ["postgres", "mysql"].filter((name) => serverOf(name)) : [];

for (const [index, other] of targets.entries()) {
  for (const [step, [statement, isMarked]] of Object.entries(STEPS)) {
    // The steps are the same everywhere.
    if (index > 0 && step !== MARKED) continue;
    test.serial(`a copy to ${other}, killed when ${step}, is refused until it is repeated`, async (t) => {
      const target = await createTestDatabase({ empty: true, on: other });
      // The package, not the bundle that this file loads.
      const kill = `import knex from "${new URL("../../node_modules/knex/knex.js", import.meta.url)}";
      const { query } = knex.Client.prototype;
      knex.Client.prototype.query = async function (connection, statement) {
        const result = await query.call(this, connection, statement);
        if (${statement}.test(statement.sql ?? statement)) process.kill(process.pid, "SIGKILL");
        return result;
      };`;
      const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(kill)}`;
      const killed = await startCommand(words(target.url, small.url), { settings: { NODE_OPTIONS } }).ended;
      t.is(killed.signal, "SIGKILL", killed.stderr);
      const inspected = openDatabase(target.url);
      t.is((await sourceOfCopy(inspected.knex)) !== undefined, isMarked);
      await inspected.close();
      if (step === MARKED) {
        const sentence =
          /^The database contains an unfinished copy of .*\. Run "linkgate copy" again to finish it, or use another database\.$/m;
        t.regex((await endingOf(startServer(on(target.url)))).stderr, sentence);
        t.regex((await runCommand(["org", "list"], on(target.url))).stderr, sentence);
      }
      t.is((await copy(target.url, small.url)).error, undefined);
    });
  }
}

test("a source that isn't migrated, and one that doesn't exist, are refused", async (t) => {
  const [from, to] = [await createTestDatabase({ empty: true }), await createTestDatabase({ empty: true })];
  const unmigrated = openDatabase(from.url);
  t.true((await unmigrated.pendingMigrations()).length > 0);
  await unmigrated.close();
  t.is((await copy(to.url, from.url)).error.code, "outdated_source");
  t.is((await copy(to.url, "sqlite:/nowhere/missing.sqlite")).error.code, "no_source");
  t.is((await copy(source.url)).error.code, "same_database");
  t.is((await copy("redis://localhost")).error.code, "invalid_url");
});

test("a target that contains something else is refused and not changed", async (t) => {
  const other = await createTestDatabase({ empty: true });
  const { knex } = inspect(other.url);
  await knex.schema.createTable("notes", (table) => void table.text("note"));
  await knex("notes" as never).insert({ note: "keep me" } as never);
  const message = "The target isn't empty (notes has rows). Use an empty database.";
  t.deepEqual(await copy(other.url), { error: { code: "not_empty", message } });
  t.false(await knex.schema.hasTable("links"));
});

test("a database that can't be reached is named without its password", async (t) => {
  const { error } = await copy("postgres://ada:hidden-word@127.0.0.1:1/linkgate");
  t.regex(error.message, /^--to: cannot connect to postgres:\/\/ada@127\.0\.0\.1:1\/linkgate/);
  t.false(JSON.stringify(error).includes("hidden-word"));
});

test("every table and column is copied, except what describes one database or is generated", async (t) => {
  const { knex } = inspect(source.url);
  const names = COPIED.map(({ name }) => name);
  const all = {
    sqlite: "select name from sqlite_schema where type = 'table' and name not like 'sqlite%'",
    postgres:
      "select table_name as name from information_schema.tables where table_schema = current_schema()",
    mysql: "select table_name as name from information_schema.tables where table_schema = database()",
  }[engine as "sqlite"];
  const rows = rowsOf<{ name: string }>(await knex.raw(all));
  const left = rows.map(({ name }) => name).filter((name) => !names.includes(name));
  const migrations = ["knex_migrations", "knex_migrations_lock", "schema_compatibility"];
  t.deepEqual(left.sort(), engine === "sqlite" ? [...migrations, "link_changes"].sort() : migrations);

  const generated = ["unchained", "pending_webhook_id"];
  for (const { name, columns } of COPIED) {
    const all = Object.keys(await knex(name).columnInfo());
    const stored = all.filter((column) => !generated.includes(column));
    t.deepEqual(stored.sort(), Object.keys(columns).sort(), name);
  }
});
