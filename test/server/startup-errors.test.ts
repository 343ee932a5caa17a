import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { toLoggedError } from "../../server/log.ts";
import { describeStartupError, toFileError, toStartupError } from "../../server/startup-errors.ts";
import { mountSmallDisk } from "../harness/database/small-disk.ts";
import { createTestStorage } from "../harness/database/storage.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { addressOf, endingOf, Program, runCommand, startServer, stopPrograms } from "../harness/program.ts";
import { postForm } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";

export const databases = "all";
export const stage = "processes";

const UNPRIVILEGED_UID = 65_534;
const KEY = Buffer.alloc(32, 7).toString("base64url");

const database = await createTestDatabase({ empty: true });
const admin = openDatabase(database.url);
const name = new URL(database.url).pathname.slice(1);
const account = engine === "postgres" ? name : `'${name.slice(-30)}'@'%'`;
const user = engine === "postgres" ? name : name.slice(-30);
if (engine === "postgres") await admin.knex.raw(`create user ${account} password 'right'`);
if (engine === "mysql") {
  await admin.knex.raw(`create user ${account} identified by 'right'`);
  await admin.knex.raw(`grant select on ${name}.* to ${account}`);
}

const limitedUser = `${user.slice(-20)}_few`;
const limited = `'${limitedUser}'@'%'`;
if (engine === "mysql") {
  await admin.knex.raw(`create user ${limited} identified by 'right' with max_user_connections 1`);
  await admin.knex.raw(`grant all on ${name}.* to ${limited}`);
}
const locked = await createTestDatabase();
const releases: (() => Promise<unknown>)[] = [() => locked.drop()];

const storage = await createTestStorage();
const disk = engine === "sqlite" ? mountSmallDisk("16k") : undefined;

test.after.always(stopPrograms);
test.after.always(() => disk?.unmount());
test.after.always(() => rmSync(folders, { recursive: true, force: true }));

test.after.always(async () => {
  for (const release of releases.reverse()) await release();
  if (engine === "mysql") await admin.knex.raw(`drop user if exists ${limited}`);
  if (engine !== "sqlite") await admin.knex.raw(`drop user if exists ${account}`);
  await admin.close();
  await database.drop();
});
test.after.always(() => storage.close());

const folders = mkdtempSync(path.join(tmpdir(), "linkgate-start-"));
chmodSync(folders, 0o755);

/** What makes the database unusable: prepares a folder, and returns the URL of the database in it. */
type Fault = {
  prepare(data: string): Promise<string> | string;
  /** The message. `{data}` stands for the folder. */
  message: string;
  /** What this machine lacks. */
  missing?: string | false;
  /** Whether the processes run as another user than the owner of the folder. */
  isForeign?: boolean;
};

const sqlite = (data: string) => `sqlite:${data}/linkgate.sqlite`;

/** Creates a database that a server has used. */
async function createUsed(data: string): Promise<string> {
  const url = sqlite(data);
  const database = openDatabase(url);
  await database.migrate();
  await database.close();
  return url;
}

const SQLITE: Record<string, Fault> = {
  "a file that is not a database": {
    prepare(data) {
      writeFileSync(`${data}/linkgate.sqlite`, "text ".repeat(1000));
      return sqlite(data);
    },
    message:
      "DATABASE_URL: cannot use {data}/linkgate.sqlite (the file is damaged, or not a SQLite database). Restore a backup.",
  },
  "a file that is read-only": {
    isForeign: true,
    async prepare(data) {
      const url = await createUsed(data);
      chmodSync(`${data}/linkgate.sqlite`, 0o444);
      return url;
    },
    message:
      "DATABASE_URL: cannot use {data}/linkgate.sqlite (the file is read-only). Make the file and its folder writable.",
  },
  "a file that may not be read": {
    isForeign: true,
    async prepare(data) {
      const url = await createUsed(data);
      chmodSync(`${data}/linkgate.sqlite`, 0o600);
      return url;
    },
    message:
      "DATABASE_URL: cannot use {data}/linkgate.sqlite (the file cannot be opened). Check the permissions of the file and its folder.",
  },
  "a folder that cannot be created": {
    isForeign: true,
    prepare: (data) => sqlite(`${data}/inner`),
    message: "Cannot write {data}/inner: permission denied.",
  },
  "a folder below a file": {
    prepare(data) {
      writeFileSync(`${data}/file`, "");
      return sqlite(`${data}/file/inner`);
    },
    message: "Cannot write {data}/file/inner: a part of the path is not a folder.",
  },
  "a folder whose name is a file's": {
    prepare(data) {
      writeFileSync(`${data}/file`, "");
      return sqlite(`${data}/file`);
    },
    message: "Cannot write {data}/file/linkgate.sqlite: a part of the path is not a folder.",
  },
  "a folder that the system refuses to create": {
    prepare: () => sqlite("/proc/linkgate"),
    message: "Cannot write /proc/linkgate: it can't be created there.",
  },
  "a full disk": {
    prepare(data) {
      disk?.fill();
      return sqlite(disk?.folder ?? data);
    },
    message: `DATABASE_URL: cannot use ${disk?.folder}/linkgate.sqlite (the disk is full). Make room on it.`,
    missing: !disk && "an in-memory file system can't be mounted (needs Linux and root)",
  },
  "a file that another process locks": {
    async prepare(data) {
      const url = await createUsed(data);
      const script = `const db = new (require("better-sqlite3"))(process.argv[1]);
        db.pragma("locking_mode = exclusive"); db.exec("begin exclusive"); console.log("held"); setInterval(() => {}, 1e6);`;
      await new Program(process.execPath, ["-e", script, `${data}/linkgate.sqlite`]).says(/held/);
      return url;
    },
    message:
      "DATABASE_URL: cannot use {data}/linkgate.sqlite (another process locks the file). Stop that process, or try again.",
  },
  "an empty file next to the key of a lost database": {
    prepare(data) {
      writeFileSync(`${data}/linkgate.sqlite`, "");
      writeFileSync(`${data}/encryption.key`, KEY, { mode: 0o600 });
      return sqlite(data);
    },
    message:
      "{data}/linkgate.sqlite is missing or empty, but {data}/encryption.key belongs to another database. Restore that database, or move the key away to start with an empty one.",
  },
};

/** Returns the URL of the server with changes. */
function urlWith(changes: { username?: string; password?: string; pathname?: string; port?: number }) {
  const url = new URL(database.url);
  Object.assign(url, changes);
  return url.href;
}
const { protocol, host } = engine === "sqlite" ? { protocol: "", host: "" } : new URL(database.url);
const at = (who: string, place = host, path = name) =>
  `DATABASE_URL: cannot connect to ${protocol}//${who}@${place}/${path}`;

const SERVERS: Record<string, Fault> = {
  "a database that doesn't exist": {
    prepare: () => urlWith({ pathname: "/nowhere" }),
    message: `${at(new URL(database.url).username, host, "nowhere")} (the database doesn't exist). Create it first.`,
  },
  "a user who may not create tables": {
    prepare: () => urlWith({ username: user, password: "right" }),
    message: `${at(user)} (the user lacks privileges). Grant it all privileges on the database.`,
  },
  "a user who doesn't exist": {
    prepare: () => urlWith({ username: "stranger", password: "secret" }),
    message:
      engine === "postgres"
        ? `${at("stranger")} (the user doesn't exist or can't log in). Check the user and password.`
        : `${at("stranger")} (wrong user or password). Check the user and password.`,
  },
};
if (engine === "postgres") {
  SERVERS["a lock that another session holds"] = {
    async prepare() {
      const held = openDatabase(locked.url, { timeoutMs: 120_000 });
      const lock = await held.knex.transaction();
      await lock.raw("lock table knex_migrations in access exclusive mode");
      releases.push(async () => {
        await lock.rollback();
        await held.close();
      });
      return locked.url;
    },
    message: `${at(new URL(locked.url).username, host, new URL(locked.url).pathname.slice(1))} (another session holds a lock). Wait until it ends, and try again.`,
  };
}
if (engine === "mysql") {
  SERVERS["a user who has the allowed number of connections"] = {
    async prepare() {
      const held = openDatabase(urlWith({ username: limitedUser, password: "right" }));
      await held.knex.raw("select 1");
      releases.push(held.close);
      return urlWith({ username: limitedUser, password: "right" });
    },
    message: `${at(limitedUser)} (too many connections). Raise the server's limit, or use fewer processes.`,
  };
  SERVERS["a wrong password"] = {
    prepare: () => urlWith({ username: user, password: "wrong" }),
    message: `${at(user)} (wrong user or password). Check the user and password.`,
  };
}

const faults = engine === "sqlite" ? SQLITE : SERVERS;
// Only root can start a process as another user, who can't read a checkout in root's home.
const canSwitchUser = spawnSync(process.execPath, ["--version"], { uid: UNPRIVILEGED_UID }).status === 0;

for (const [what, { prepare, message, isForeign, missing }] of Object.entries(faults)) {
  const title = `${what} is reported in one sentence by the server and the command`;
  if (isForeign && !canSwitchUser) {
    skip(title, "it needs root, and a checkout that other users can read");
    continue;
  }
  if (missing) {
    skip(title, missing);
    continue;
  }
  test(title, async (t) => {
    const cwd = path.join(folders, what.replaceAll(/\W+/g, "-"));
    const data = path.join(cwd, "data");
    mkdirSync(data, { recursive: true });
    chownSync(cwd, 0, 0);
    chmodSync(data, 0o755);
    const settings = {
      DATABASE_URL: await prepare(data),
      PORT: "0",
      LOG_LEVEL: "silent",
      ...(!/lost/.test(what) && { ENCRYPTION_KEY: KEY }),
    };
    const options = { cwd, settings, ...(isForeign && { uid: UNPRIVILEGED_UID }) };
    const expected = message.replaceAll("{data}", data);
    t.like(await endingOf(startServer(options)), { code: 1, stdout: "", stderr: `${expected}\n` });
    const command = await runCommand(["org", "create", "Acme", "--json"], options);
    t.is(command.code, 1);
    t.deepEqual(JSON.parse(command.stderr), { error: { code: "failed", message: expected } });
  });
}

if (engine !== "sqlite") {
  test("a database server that never responds is reported in one sentence", async (t) => {
    const silent = createServer(() => {}).listen(0, "127.0.0.1");
    await once(silent, "listening");
    t.teardown(() => void silent.close());
    const { port } = silent.address() as { port: number };
    const settings = {
      DATABASE_URL: urlWith({ username: "ada", password: "secret", port }).replace(/@[^:/]+/, "@127.0.0.1"),
      DATABASE_TIMEOUT: "1",
      ENCRYPTION_KEY: KEY,
      PORT: "0",
      LOG_LEVEL: "silent",
    };
    t.like(await endingOf(startServer({ settings })), {
      code: 1,
      stderr: `${at("ada", `127.0.0.1:${port}`)} (timed out). Check the host and port, and that the server is running.\n`,
    });
  });
}

test("a network error of anything but the database is not blamed on DATABASE_URL", (t) => {
  const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  t.is(toFileError(refused), refused);
  t.regex(
    String(toStartupError(refused, "postgres://db.example.com/linkgate")),
    /DATABASE_URL: cannot connect to/,
  );
});

const { knex } = storage.database;

const SECRET = "a-value-that-must-not-be-logged";

test("the log shows neither the SQL nor the values of a database error", async (t) => {
  const lease = { name: SECRET, holder: SECRET, expires_at: 1 };
  await knex("leases").insert(lease);
  const errors = await Promise.all([
    t.throwsAsync(async () => knex("leases").insert(lease)),
    t.throwsAsync(async () => knex.raw(`select '${SECRET}' from missing_table`)),
    t.throwsAsync(async () => knex("leases").insert({ ...lease, [SECRET]: 1 } as never)),
  ]);
  for (const error of errors) {
    const text = JSON.stringify(toLoggedError(new Error("unavailable", { cause: error })));
    t.false(text.includes(SECRET), text);
    t.false(/insert into|select/i.test(text), text);
    t.regex(text, /"code":"\w+"/);
  }
});

test("the log shows the message, code and cause of any other error, and no other property", (t) => {
  const error = Object.assign(new Error("no route", { cause: new TypeError("inner") }), {
    code: "ENOTFOUND_HOST",
    body: SECRET,
  });
  const logged = toLoggedError(error);
  t.like(logged, { type: "Error", code: "ENOTFOUND_HOST", message: "no route" });
  t.like(logged.cause, { type: "TypeError", message: "inner" });
  t.false(JSON.stringify(logged).includes(SECRET));
});

test("a server logs a database error without the SQL and the values of the request", async (t) => {
  const server = startServer({
    settings: {
      PORT: "0",
      LOG_LEVEL: "error",
      DATABASE_URL: storage.url,
      ENCRYPTION_KEY: Buffer.from(storage.encryptionKey).toString("base64url"),
    },
  });
  const address = await addressOf(server);
  await knex.schema.renameTable("users", "missing_users");
  const answer = await postForm(`${address}/auth/login`, { username: SECRET, password: SECRET });
  t.is(answer.status, 500);
  await knex.schema.renameTable("missing_users", "users");
  const { stdout } = await server.stop();
  const [logged] = stdout.split("\n").filter((line) => line.startsWith("{"));
  const { err } = JSON.parse(logged ?? "{}") as { err?: Record<string, unknown> };
  t.regex(String(err?.code), /^\w+$/);
  t.is(err?.message, undefined);
  t.false(stdout.includes(SECRET), logged);
  t.notRegex(stdout, /select/i);
});

for (const [code, what] of [
  ["55P03", "another session holds a lock"],
  ["57014", "no response in time"],
  ["ERR_DATABASE_TIMEOUT", "no response in time"],
] as const)
  test(`${code} is not described as an unreachable host`, (t) => {
    const error = Object.assign(new Error("canceling statement"), { code });
    const sentence = describeStartupError(error, "postgres://db.example/linkgate") ?? "";
    t.true(sentence.startsWith(`DATABASE_URL: cannot connect to postgres://db.example/linkgate (${what}).`));
  });
