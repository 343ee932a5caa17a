import { randomBytes } from "node:crypto";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { openStorage } from "../../../adapters/index.ts";
import { readKeyFile } from "../../../server/keys/encryption-keys.ts";
import { endOf, keysInUse, loadStoredKeys, withoutEnded } from "../../../server/keys/shared-keys.ts";
import { createTestDatabase, serverOf } from "../../harness/database/test-database.ts";
import { addressOf, endingOf, ROOT, runCommand, startServer, stopPrograms } from "../../harness/program.ts";
import { skip } from "../../harness/skip.ts";
import { HAS_STRACE, readCalls, startTraced } from "../../harness/system-calls.ts";
import { until } from "../../harness/webhooks.ts";

export const stage = "processes";

test.after.always(stopPrograms);
test.after.always(() => rmSync(folders, { recursive: true, force: true }));

const folders = realpathSync(mkdtempSync(path.join(tmpdir(), "linkgate-key-file-")));

const emptyFolder = () => mkdtempSync(path.join(folders, "folder-"));
const settings = { PORT: "0", LOG_LEVEL: "silent" };

/** Starts a server in a folder and stops it. */
async function startOnce(cwd: string): Promise<void> {
  const server = startServer({ cwd, settings });
  await addressOf(server);
  await server.stop();
}

const durableStart = "the encryption key is on the disk before the first connection is accepted";
const durableRotation = "a rotated encryption key is on the disk before it encrypts";
if (!HAS_STRACE)
  for (const title of [durableStart, durableRotation])
    skip(title, "strace is not installed, or may not trace processes");
else {
  test(durableStart, async (t) => {
    const cwd = emptyFolder();
    const trace = path.join(folders, "start.trace");
    const server = startTraced(trace, [`${ROOT}server/main.ts`], { cwd, settings });
    await fetch(`${await addressOf(server)}/healthz`);
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
    await startOnce(cwd);
    const trace = path.join(folders, "rotation.trace");
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

/** Asserts that calls were made one after the other. */
function isInOrder(t: ExecutionContext, calls: string[], expected: string[]): void {
  let index = -1;
  const found = expected.filter((call) => {
    index = calls.indexOf(call, index + 1);
    return index >= 0;
  });
  t.deepEqual(found, expected, calls.join("\n"));
}

test("without the key that it was encrypted with, a database is neither used nor given another key", async (t) => {
  const cwd = emptyFolder();
  await startOnce(cwd);
  const key = `${cwd}/data/encryption.key`;
  rmSync(key);
  const message = `${key} is missing, but the database contains values that are encrypted with its key. Restore that file, or set ENCRYPTION_KEY or ENCRYPTION_KEY_FILE.`;
  for (const more of [{}, { WORKERS: "2" }]) {
    const start = await endingOf(startServer({ cwd, settings: { ...settings, ...more } }));
    t.like(start, { code: 1, stdout: "", stderr: `${message}\n` });
  }
  const command = await runCommand(["org", "create", "Acme", "--json"], { cwd });
  t.deepEqual(JSON.parse(command.stderr), { error: { code: "failed", message } });
  const doctor = JSON.parse((await runCommand(["doctor", "--json"], { cwd })).stdout);
  t.like(doctor.checks.find(isFailed), { name: "encryption", detail: message });
  const list = await runCommand(["keys", "list", "--json"], { cwd });
  t.is(JSON.parse(list.stderr).error.message, message);
  t.deepEqual(readdirSync(`${cwd}/data`), ["linkgate.sqlite"]);
});

const isFailed = ({ ok }: { ok: boolean }) => !ok;

test("a start that can't reach its database creates nothing, so the next one with SQLite works", async (t) => {
  const cwd = emptyFolder();
  const DATABASE_URL = "postgres://ada:secret@127.0.0.1:1/links";
  t.is((await endingOf(startServer({ cwd, settings: { ...settings, DATABASE_URL } }))).code, 1);
  t.is((await runCommand(["org", "create", "Acme"], { cwd, settings: { DATABASE_URL } })).code, 1);
  t.deepEqual(readdirSync(cwd), []);
  await startOnce(cwd);
});

test("commands that only read create neither a database nor a key, and say what is missing", async (t) => {
  const cwd = emptyFolder();
  const missing = `DATABASE_URL: ${cwd}/data/linkgate.sqlite doesn't exist. Start the server or run "linkgate migrate" to create it.`;
  const doctor = await runCommand(["doctor", "--json"], { cwd });
  t.is(doctor.code, 1);
  const { checks } = JSON.parse(doctor.stdout);
  t.deepEqual(checks.filter(isFailed), [{ name: "database", ok: false, detail: missing }]);
  for (const words of ["org list", "keys list", "audit operator", "backup copy.sqlite"]) {
    const { stderr } = await runCommand([...words.split(" "), "--json"], { cwd });
    t.deepEqual(JSON.parse(stderr), { error: { code: "no_database", message: missing } }, words);
  }
  t.deepEqual(readdirSync(cwd), []);

  // A process that died before it had migrated the database, or before it had created the key.
  const database = openDatabase(`sqlite:${cwd}/data/linkgate.sqlite`);
  await database.knex.raw("create table unused (id integer)");
  const unmigrated = await runCommand(["org", "list", "--json"], { cwd });
  t.is(JSON.parse(unmigrated.stderr).error.code, "not_migrated");
  await database.migrate();
  await database.close();
  const keyless = JSON.parse((await runCommand(["doctor", "--json"], { cwd })).stdout);
  t.deepEqual(keyless.checks.filter(isFailed), []);
  t.is((await runCommand(["org", "list", "--json"], { cwd })).code, 0);
  t.is(JSON.parse((await runCommand(["keys", "list", "--json"], { cwd })).stderr).error.code, "no_keys");
  t.deepEqual(readdirSync(`${cwd}/data`), ["linkgate.sqlite"]);
  await startOnce(cwd);
  t.is((await runCommand(["keys", "list", "--json"], { cwd })).code, 0);
});

for (const words of ["migrate", "org create Acme", "keys rotate cookies"]) {
  test(`"${words}" as the first command creates a database and its key`, async (t) => {
    const cwd = emptyFolder();
    t.like(await runCommand([...words.split(" "), "--json"], { cwd }), { code: 0, stderr: "" });
    t.deepEqual(readdirSync(`${cwd}/data`), ["encryption.key", "linkgate.sqlite"]);
    for (const [file, mode] of Object.entries({
      "": 0o700,
      "encryption.key": 0o600,
      "linkgate.sqlite": 0o600,
    }))
      t.is(statSync(path.join(cwd, "data", file)).mode & 0o777, mode, file);
    await startOnce(cwd);
  });
}

test("workers share the key that the first start creates", async (t) => {
  const cwd = emptyFolder();
  const server = startServer({ cwd, settings: { ...settings, WORKERS: "2" } });
  await addressOf(server);
  const { size } = statSync(`${cwd}/data/encryption.key`);
  t.is(
    Buffer.from(readFileSync(`${cwd}/data/encryption.key`, "utf8"), "base64url").length,
    32,
    `${size} bytes`,
  );
  t.is((await server.stop()).code, 0);
});

const onServer = "outside production, the key of a PostgreSQL database is created in data";
if (!serverOf("postgres")) skip(onServer, "TEST_POSTGRES_URL is not set");
else
  test(onServer, async (t) => {
    const cwd = emptyFolder();
    const database = await createTestDatabase({ on: "postgres", empty: true });
    const own = { ...settings, DATABASE_URL: database.url };
    const servers = [1, 2].map(() => startServer({ cwd, settings: own }));
    await Promise.all(servers.map(addressOf));
    for (const server of servers) t.is((await server.stop()).code, 0);
    t.deepEqual(readdirSync(`${cwd}/data`), ["encryption.key"]);
    rmSync(`${cwd}/data/encryption.key`);
    t.regex((await endingOf(startServer({ cwd, settings: own }))).stderr, /encryption\.key is missing, but/);
    t.deepEqual(readdirSync(`${cwd}/data`), []);
    await database.drop();
  });

test("of concurrent changes of the encryption keys one succeeds, and no stored secret is lost", async (t) => {
  const database = await createTestDatabase();
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-rotations-"));
  const file = path.join(folder, "keys");
  writeFileSync(file, randomBytes(32).toString("base64url"), { mode: 0o600 });
  const before = openStorage(database.url, readKeyFile(file));
  await before.migrate();
  const stored = await loadStoredKeys(before.keys);
  await before.close();

  const settings = { DATABASE_URL: database.url, ENCRYPTION_KEY_FILE: file };
  const rotate = () => runCommand(["keys", "rotate", "encryption", "--json"], { settings });
  const results = await Promise.all([rotate(), rotate()]);
  const refused = results.filter(({ code }) => code !== 0);
  t.is(refused.length, 1);
  t.is(JSON.parse(refused[0]?.stderr ?? "{}").error.code, "keys_busy");
  t.is(readKeyFile(file).length, 2);
  const after = openStorage(database.url, readKeyFile(file));
  t.deepEqual(await loadStoredKeys(after.keys), stored);
  await after.close();
  await database.drop();
  rmSync(folder, { recursive: true });
});

const LIFETIME = 100;
const names = (keys: { name: string }[]) => keys.map(({ name }) => name).join(" ");

const KEYS = [{ name: "next", active_from: 2000 }, { name: "current", active_from: 1000 }, { name: "first" }];

const MOMENTS: [now: number, inUse: string][] = [
  [0, "first next current"],
  [999, "first next current"],
  [1000, "current next first"],
  [1099, "current next first"],
  [1100, "current next"],
  [2000, "next current"],
  [2100, "next"],
  [999_999, "next"],
];

for (const [now, inUse] of MOMENTS) {
  test(`at ${now}, the first of "${inUse}" signs and all of them verify`, (t) => {
    t.is(names(keysInUse(KEYS, now, LIFETIME)), inUse);
  });
}

test("a key ends when its successor has been in use for the lifetime of its signatures", (t) => {
  t.deepEqual(
    [0, 1, 2].map((index) => endOf(KEYS, index, LIFETIME)),
    [Number.POSITIVE_INFINITY, 2100, 1100],
  );
  t.is(names(withoutEnded(KEYS, 1100, LIFETIME)), "next current");
});
