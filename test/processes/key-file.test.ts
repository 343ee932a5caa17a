import { readdirSync, rmSync, statSync } from "node:fs";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { openStorage } from "../../adapters/index.ts";
import { readKeyFile } from "../../server/keys/encryption-keys.ts";
import { loadStoredKeys } from "../../server/keys/shared-keys.ts";
import { createTestDatabase, serverOf } from "../harness/database/test-database.ts";
import { prepareServers } from "../harness/new-server.ts";
import { endingOf, ROOT, refusalOf, runCommand, startServer, temporaryFolder } from "../harness/program.ts";
import { skip } from "../harness/skip.ts";
import { HAS_STRACE, isInOrder, readCalls, startTraced } from "../harness/system-calls.ts";
import { until } from "../harness/webhooks.ts";

const emptyFolder = () => temporaryFolder("key-file");
const settings = { PORT: "0", LOG_LEVEL: "silent" };

const startOnce = (cwd: string) => endingOf(startServer({ cwd, settings }));

async function failuresIn(cwd: string): Promise<object[]> {
  const { stdout } = await runCommand(["doctor", "--json"], { cwd });
  return JSON.parse(stdout).checks.filter(({ ok }: { ok: boolean }) => !ok);
}

const durableStart = "the encryption key is on the disk before the first connection is accepted";
const durableRotation = "a rotated encryption key is on the disk before it encrypts";
if (!HAS_STRACE)
  for (const title of [durableStart, durableRotation])
    skip(title, "strace is not installed, or may not trace processes");
else {
  test(durableStart, async (t) => {
    const cwd = emptyFolder();
    const trace = `${emptyFolder()}/start`;
    const server = startTraced(trace, [`${ROOT}server/main.ts`], { cwd, settings });
    const [, address] = await server.says(/listening on (\S+)$/m);
    await fetch(`${address}/healthz`);
    const calls = await until(async () => {
      const made = readCalls(trace, cwd);
      return made.includes("accept4") ? made : undefined;
    });
    server.killGroup();
    await server.ended;
    isInOrder(t, calls, ["mkdir data", "fsync .", "accept4"]);
    isInOrder(t, calls, [
      "openat data/encryption.key",
      "fsync data/encryption.key",
      "link data/encryption.key data/encryption.key",
      "fsync data",
      "fsync data/linkgate.sqlite-wal",
      "accept4",
    ]);
  });

  test(durableRotation, async (t) => {
    const cwd = emptyFolder();
    t.is((await startOnce(cwd)).code, 0);
    const trace = `${emptyFolder()}/rotation`;
    const words = [`${ROOT}server/cli/index.ts`, "keys", "rotate", "encryption"];
    t.like(await startTraced(trace, words, { cwd }).ended, { code: 0 });
    const replaced = [
      "openat data/encryption.key",
      "fsync data/encryption.key",
      "rename data/encryption.key data/encryption.key",
      "fsync data",
    ];
    isInOrder(t, readCalls(trace, cwd), [...replaced, ...replaced, "fsync data/linkgate.sqlite-wal"]);
  });
}

test("without the key that it was encrypted with, a database is neither used nor given another key", async (t) => {
  const cwd = emptyFolder();
  t.is((await startOnce(cwd)).code, 0);
  const key = `${cwd}/data/encryption.key`;
  rmSync(key);
  const message = `${key} is missing, but the database contains values that are encrypted with its key. Restore that file, or set ENCRYPTION_KEY or ENCRYPTION_KEY_FILE.`;
  for (const more of [{}, { WORKERS: "2" }]) {
    const start = await endingOf(startServer({ cwd, settings: { ...settings, ...more } }));
    t.like(start, { code: 1, stdout: "", stderr: `${message}\n` });
  }
  t.deepEqual(await refusalOf(["org", "create", "Acme"], { cwd }), { code: "failed", message });
  t.like((await failuresIn(cwd))[0], { name: "encryption", detail: message });
  t.is((await refusalOf(["keys", "list"], { cwd })).message, message);
  t.deepEqual(readdirSync(`${cwd}/data`), ["linkgate.sqlite"]);
});

test("a start that can't reach its database creates nothing, so the next one with SQLite works", async (t) => {
  const cwd = emptyFolder();
  const DATABASE_URL = "postgres://ada:secret@127.0.0.1:1/links";
  t.is((await endingOf(startServer({ cwd, settings: { ...settings, DATABASE_URL } }))).code, 1);
  t.is((await runCommand(["org", "create", "Acme"], { cwd, settings: { DATABASE_URL } })).code, 1);
  t.deepEqual(readdirSync(cwd), []);
  t.is((await startOnce(cwd)).code, 0);
});

test("commands that only read create neither a database nor a key, and say what is missing", async (t) => {
  const cwd = emptyFolder();
  const missing = `DATABASE_URL: ${cwd}/data/linkgate.sqlite doesn't exist. Start the server or run "linkgate migrate" to create it.`;
  t.deepEqual(await failuresIn(cwd), [{ name: "database", ok: false, detail: missing }]);
  for (const words of ["org list", "keys list", "audit operator", "backup copy.sqlite", "upgrade --check"]) {
    const refusal = await refusalOf(words.split(" "), { cwd });
    t.deepEqual(refusal, { code: "no_database", message: missing }, words);
  }
  t.deepEqual(readdirSync(cwd), []);

  // A process that died before it had migrated the database, or before it had created the key.
  const database = openDatabase(`sqlite:${cwd}/data/linkgate.sqlite`);
  await database.knex.raw("create table unused (id integer)");
  t.is((await refusalOf(["org", "list"], { cwd })).code, "not_migrated");
  await database.migrate();
  await database.close();
  t.deepEqual(await failuresIn(cwd), []);
  t.is((await runCommand(["org", "list", "--json"], { cwd })).code, 0);
  t.is((await refusalOf(["keys", "list"], { cwd })).code, "no_keys");
  t.deepEqual(readdirSync(`${cwd}/data`), ["linkgate.sqlite"]);
  t.is((await startOnce(cwd)).code, 0);
  t.is((await runCommand(["keys", "list", "--json"], { cwd })).code, 0);
});

test("the first command that writes creates a database and its key", async (t) => {
  const cwd = emptyFolder();
  t.like(await runCommand(["org", "create", "Acme", "--json"], { cwd }), { code: 0, stderr: "" });
  t.deepEqual(readdirSync(`${cwd}/data`), ["encryption.key", "linkgate.sqlite"]);
  const modeOf = (file: string) => statSync(`${cwd}/data/${file}`).mode & 0o777;
  t.deepEqual(["", "encryption.key", "linkgate.sqlite"].map(modeOf), [0o700, 0o600, 0o600]);
  t.is((await startOnce(cwd)).code, 0);
});

const onServer = "outside production, the key of a PostgreSQL database is created in data";
if (!serverOf("postgres")) skip(onServer, "TEST_POSTGRES_URL is not set");
else
  test(onServer, async (t) => {
    const cwd = emptyFolder();
    const database = await createTestDatabase({ on: "postgres", empty: true });
    const own = { ...settings, DATABASE_URL: database.url };
    const servers = [1, 2].map(() => startServer({ cwd, settings: own }));
    for (const { code } of await Promise.all(servers.map(endingOf))) t.is(code, 0);
    t.deepEqual(readdirSync(`${cwd}/data`), ["encryption.key"]);
    rmSync(`${cwd}/data/encryption.key`);
    t.regex((await endingOf(startServer({ cwd, settings: own }))).stderr, /encryption\.key is missing, but/);
    t.deepEqual(readdirSync(`${cwd}/data`), []);
  });

test("of concurrent changes of the encryption keys one succeeds, and no stored secret is lost", async (t) => {
  const file = `${emptyFolder()}/keys`;
  const { settings, storage } = await prepareServers({}, { keyFile: file });
  await storage.migrate();
  const stored = await loadStoredKeys(storage.keys);

  const rotate = () => runCommand(["keys", "rotate", "encryption", "--json"], { settings });
  const results = await Promise.all([rotate(), rotate()]);
  const refused = results.filter(({ code }) => code !== 0);
  t.is(refused.length, 1);
  t.is(JSON.parse(refused[0]?.stderr ?? "{}").error.code, "keys_busy");
  t.is(readKeyFile(file).length, 2);
  const after = openStorage(settings.DATABASE_URL, readKeyFile(file));
  t.deepEqual(await loadStoredKeys(after.keys), stored);
  await after.close();
});
