import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { openStorage } from "../../adapters/index.ts";
import { apiAt } from "../harness/clients/api.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { inhabit, settingsFor } from "../harness/inhabited.ts";
import { CLI, ROOT, runCommand, runShell, startCommand, stopPrograms } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-backup-"));
const source = await createTestDatabase({ empty: true });
const { ENCRYPTION_KEY = "", ...withoutKey } = await settingsFor(source.url);
const keyFile = path.join(folder, "encryption.key");
writeFileSync(keyFile, ENCRYPTION_KEY, { mode: 0o600 });
const settings = { ...withoutKey, ENCRYPTION_KEY_FILE: keyFile };
const inhabited = await inhabit(settings);
test.after.always(stopPrograms);
test.after.always(async () => {
  await inhabited.close();
  await source.drop();
  rmSync(folder, { recursive: true });
});

const backUp = (...words: string[]) => runCommand(["backup", ...words, "--json"], { settings });
const onSqlite = engine === "sqlite" ? test.serial : test.serial.skip;
const onServers = engine === "sqlite" ? test.serial.skip : test.serial;

onSqlite(
  "a backup of a SQLite database that is written to is complete, private and never overwritten",
  async (t) => {
    const service = await startTestService(settings);
    const api = apiAt(service.url, inhabited.token);
    let isWriting = true;
    const writing = (async () => {
      while (isWriting) await api.createLink();
    })();
    const file = path.join(folder, "running.sqlite");
    const { code, stdout, stderr } = await backUp(file);
    isWriting = false;
    await writing;
    await service.close();
    t.is(code, 0, stderr);
    t.true(JSON.parse(stdout).tables.length > 30);
    t.is(statSync(file).mode & 0o777, 0o600);
    t.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith("running")),
      ["running.sqlite"],
    );
    const before = readFileSync(file);
    t.is(JSON.parse((await backUp(file)).stderr).error.code, "file_exists");
    t.deepEqual(readFileSync(file), before);
    await inhabited.useAll(t, { DATABASE_URL: `sqlite:${file}` });
  },
);

onSqlite("a backup contains the key only if that is requested", async (t) => {
  const file = path.join(folder, "keyed.sqlite");
  const { code, stderr } = await backUp(file, "--with-key");
  t.is(code, 0, stderr);
  t.is(readFileSync(`${file}.key`, "utf8"), readFileSync(keyFile, "utf8"));
  t.is(statSync(`${file}.key`).mode & 0o777, 0o600);
  t.false(readFileSync(file).includes(ENCRYPTION_KEY));
  const inVariable = { ...withoutKey, ENCRYPTION_KEY };
  const refused = await runCommand(["backup", `${file}2`, "--with-key", "--json"], { settings: inVariable });
  t.is(JSON.parse(refused.stderr).error.code, "no_key_file");
  t.false(existsSync(`${file}2`));
});

onSqlite("a folder that doesn't exist is named in one sentence", async (t) => {
  const missing = path.join(folder, "missing");
  const { code, stderr } = await backUp(path.join(missing, "backup.sqlite"));
  t.is(code, 1);
  t.is(JSON.parse(stderr).error.message, `The backup failed: ${missing} doesn't exist.`);
});

onSqlite("a backup that is interrupted leaves no file", async (t) => {
  const large = await createTestDatabase({ empty: true });
  t.teardown(large.drop);
  const own = { ...settings, DATABASE_URL: large.url };
  t.is((await runCommand(["migrate"], { settings: own })).code, 0);
  const { knex, close } = openDatabase(large.url);
  await knex.raw("create table ballast (content blob)");
  await knex.raw(`insert into ballast with recursive n(i) as (select 1 union all select i + 1 from n where i < 100)
    select zeroblob(1000000) from n`);
  await close();
  const target = path.join(folder, "interrupted");
  mkdirSync(target);
  const command = startCommand(["backup", path.join(target, "backup.sqlite")], { settings: own });
  await until(async () => readdirSync(target).length > 0 || undefined);
  command.kill();
  const { code, signal, stderr } = await command.ended;
  t.is(signal, null);
  // A backup that was complete when the signal came is kept.
  t.deepEqual(readdirSync(target), code === 0 ? ["backup.sqlite"] : []);
  if (code !== 0) t.regex(stderr, /^The backup failed: interrupted by SIGTERM$/m);
});

onServers("PostgreSQL and MariaDB are backed up with their own tools", async (t) => {
  const { code, stderr } = await backUp(path.join(folder, "other"));
  t.is(code, 1);
  t.regex(
    JSON.parse(stderr).error.message,
    /^Use (pg_dump|mariadb-dump), as described in docs\/operate\/backup\.md\.$/,
  );
});

test.serial(
  "a documented backup is valid in an empty database with its key, and in part without",
  async (t) => {
    const target = await createTestDatabase({ empty: true });
    const work = path.join(folder, "work");
    mkdirSync(work);
    const sections = { sqlite: "SQLite", postgres: "PostgreSQL", mysql: "MariaDB and MySQL" };
    const [backup = "", restore = ""] = commandsOf(sections[engine as "sqlite"]);
    const run = (script: string, url: string) =>
      runShell(`set -e\n${script.replaceAll("npx linkgate", CLI)}`, {
        cwd: work,
        settings: { ...settings, DATABASE_URL: url, ...clientSettings(url) },
      });
    const saved = await run(backup, source.url);
    t.is(saved.code, 0, saved.stderr);
    const restored = await run(restore, target.url);
    t.is(restored.code, 0, restored.stderr);
    const restoredUrl = engine === "sqlite" ? `sqlite:${work}/data/linkgate.sqlite` : target.url;
    await inhabited.useAll(t, { DATABASE_URL: restoredUrl });

    const foreign = openStorage(restoredUrl, [Buffer.alloc(32, 1)]);
    await t.throwsAsync(foreign.keys.check(), { name: "WrongEncryptionKey" }, "another key opens nothing");
    await foreign.close();

    // The recovery of a database whose key was lost.
    const database = openDatabase(restoredUrl);
    for (const statement of commandsOf("After a restore", "sql").join("").trim().split(";\n"))
      await database.knex.raw(statement.replace(/;$/, ""));
    await database.close();
    const newKeyFile = path.join(folder, "new.key");
    writeFileSync(newKeyFile, Buffer.alloc(32, 2).toString("base64url"), { mode: 0o600 });
    const changed = { DATABASE_URL: restoredUrl, ENCRYPTION_KEY_FILE: newKeyFile };
    await inhabited.useAll(t, changed, { hasKey: false });
    await target.drop();
  },
);

/** Returns the code blocks of a section of the documentation. */
function commandsOf(heading: string, language = "sh"): string[] {
  const page = readFileSync(path.join(ROOT, "docs/operate/backup.md"), "utf8");
  const [own = ""] = (page.split(`\n## ${heading}\n`)[1] ?? "").split("\n## ");
  const blocks = own.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, "gm"));
  return [...blocks].map(([, command = ""]) => command);
}

/** The variables that the recipes use for the address of the server. */
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
