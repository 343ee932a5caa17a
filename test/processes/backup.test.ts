import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { apiAt } from "../harness/clients/api.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { blocksOf } from "../harness/examples.ts";
import { inhabit, settingsFor } from "../harness/inhabited.ts";
import { CLI, refusalOf, resultOf, runShell, startCommand, temporaryFolder } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

const folder = temporaryFolder("backup");
const source = await createTestDatabase({ empty: true });
const { ENCRYPTION_KEY = "", ...withoutKey } = await settingsFor(source.url);
const keyFile = `${folder}/encryption.key`;
writeFileSync(keyFile, ENCRYPTION_KEY, { mode: 0o600 });
const settings = { ...withoutKey, ENCRYPTION_KEY_FILE: keyFile };
const inhabited = await inhabit(settings);

const backUp = (...words: string[]) => resultOf<{ tables: object[] }>(["backup", ...words], { settings });
const onSqlite = engine === "sqlite" ? test.serial : test.serial.skip;
const onServers = engine === "sqlite" ? test.serial.skip : test.serial;

onSqlite("a backup of SQLite during writes is complete, private and never overwritten", async (t) => {
  const service = await startTestService(settings);
  const api = apiAt(service.url, inhabited.token);
  let isWriting = true;
  const writing = (async () => {
    while (isWriting) await api.createLink();
  })();
  const file = `${folder}/running.sqlite`;
  const { tables } = await backUp(file).finally(() => (isWriting = false));
  await writing;
  await service.close();
  t.true(tables.length > 30);
  t.is(statSync(file).mode & 0o777, 0o600);
  const written = readdirSync(folder).filter((name) => name.startsWith("running"));
  t.deepEqual(written, ["running.sqlite"]);
  const before = readFileSync(file);
  t.is((await refusalOf(["backup", file], { settings })).code, "file_exists");
  t.deepEqual(readFileSync(file), before);
  await inhabited.useAll(t, { DATABASE_URL: `sqlite:${file}` });
});

onSqlite("a backup contains the key only if that is requested", async (t) => {
  const file = `${folder}/keyed.sqlite`;
  await backUp(file, "--with-key");
  t.is(readFileSync(`${file}.key`, "utf8"), readFileSync(keyFile, "utf8"));
  t.is(statSync(`${file}.key`).mode & 0o777, 0o600);
  t.false(readFileSync(file).includes(ENCRYPTION_KEY));
  const inVariable = { ...withoutKey, ENCRYPTION_KEY };
  const refused = await refusalOf(["backup", `${file}2`, "--with-key"], { settings: inVariable });
  t.is(refused.code, "no_key_file");
  t.false(existsSync(`${file}2`));
});

onSqlite("a backup that is interrupted leaves no file", async (t) => {
  const large = await createTestDatabase({ empty: true });
  const own = { ...settings, DATABASE_URL: large.url };
  const { knex, migrate, close } = openDatabase(large.url);
  await migrate();
  await knex.raw("create table ballast (content blob)");
  await knex.raw(`insert into ballast with recursive n(i) as (select 1 union all select i + 1 from n where i < 100)
    select zeroblob(1000000) from n`);
  await close();
  const target = temporaryFolder("interrupted");
  const command = startCommand(["backup", `${target}/backup.sqlite`], { settings: own });
  await until(async () => readdirSync(target).length > 0 || undefined);
  command.kill();
  const { code, signal, stderr } = await command.ended;
  t.is(signal, null);
  // A backup that was complete when the signal came is kept.
  t.deepEqual(readdirSync(target), code === 0 ? ["backup.sqlite"] : []);
  if (code !== 0) t.regex(stderr, /^The backup failed: interrupted by SIGTERM$/m);
});

onServers("PostgreSQL and MariaDB are backed up with their own tools", async (t) => {
  const { message } = await refusalOf(["backup", `${folder}/other`], { settings });
  t.regex(message, /^Use (pg_dump|mariadb-dump), as described in docs\/operate\/backup\.md\.$/);
});

test.serial("a documented backup is valid in an empty database, and in part without its key", async (t) => {
  const target = await createTestDatabase({ empty: true });
  const work = temporaryFolder("restored");
  const sections = { sqlite: "SQLite", postgres: "PostgreSQL", mysql: "MariaDB and MySQL" };
  const [backup = "", restore = ""] = commandsOf(sections[engine as "sqlite"]);
  for (const [script, url] of [
    [backup, source.url],
    [restore, target.url],
  ] as const) {
    const own = { ...settings, DATABASE_URL: url, ...clientSettings(url) };
    const pasted = `set -e\n${script.replaceAll("npx linkgate", CLI)}`;
    const { code, stderr } = await runShell(pasted, { cwd: work, settings: own });
    t.is(code, 0, stderr);
  }
  const restoredUrl = engine === "sqlite" ? `sqlite:${work}/data/linkgate.sqlite` : target.url;
  await inhabited.useAll(t, { DATABASE_URL: restoredUrl });

  // The recovery of a database whose key was lost.
  const database = openDatabase(restoredUrl);
  for (const statement of commandsOf("After a restore", "sql").join("").trim().split(";\n"))
    await database.knex.raw(statement.replace(/;$/, ""));
  await database.close();
  const newKey = { ENCRYPTION_KEY: Buffer.alloc(32, 2).toString("base64url"), ENCRYPTION_KEY_FILE: "" };
  await inhabited.useAll(t, { DATABASE_URL: restoredUrl, ...newKey }, { hasKey: false });
});

function commandsOf(heading: string, language = "sh"): string[] {
  const own = blocksOf("docs/operate/backup.md").filter((block) => block.heading === heading);
  return own.filter((block) => block.language === language).map(({ code }) => code);
}

function clientSettings(url: string): Record<string, string> {
  if (engine === "sqlite") return {};
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    DATABASE_HOST: hostname,
    DATABASE_PORT: port,
    DATABASE_USER: decodeURIComponent(username),
    DATABASE_NAME: pathname.slice(1),
    MYSQL_PWD: decodeURIComponent(password),
  };
}
