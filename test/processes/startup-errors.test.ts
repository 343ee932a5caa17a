import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { rejectLostDatabase } from "../../server/keys/encryption-keys.ts";
import { toLoggedError } from "../../server/log.ts";
import { readSettings } from "../../server/settings/config.ts";
import { toFileError } from "../../server/startup-errors.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { prepareServers } from "../harness/new-server.ts";
import { endingOf, Program, refusalOf, startServer, temporaryFolder } from "../harness/program.ts";
import { postForm, startTestService } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";

export const databases = "all";
const UNPRIVILEGED_UID = 65_534;
const KEY = Buffer.alloc(32, 7).toString("base64url");

const database = await createTestDatabase({ empty: true });
const admin = openDatabase(database.url);
const name = new URL(database.url).pathname.slice(1);
const locked = await createTestDatabase();
const releases: (() => Promise<unknown>)[] = [() => locked.drop()];

/** Creates a user of the database server, and returns how its statements name it. */
async function createUser(user: string, options = ""): Promise<string> {
  const account = engine === "postgres" ? user : `'${user}'@'%'`;
  const password = engine === "postgres" ? "password 'right'" : "identified by 'right'";
  await admin.knex.raw(`create user ${account} ${password} ${options}`);
  releases.push(async () => admin.knex.raw(`drop user ${account}`));
  return account;
}

const { settings: logged, storage, start, close } = await prepareServers({ LOG_LEVEL: "error" });
await storage.migrate();
const { knex, close: disconnect } = openDatabase(logged.DATABASE_URL);

test.after.always(async () => {
  for (const release of releases.reverse()) await release();
  await Promise.all([admin.close(), disconnect(), close()]);
});

const folders = temporaryFolder("start");
chmodSync(folders, 0o755);

/** What makes the database unusable: prepares a folder, and returns the URL of the database in it. */
type Fault = {
  prepare(data: string): Promise<string> | string;
  /** The message. `{data}` stands for the folder. */
  message: string;
  /** Whether the processes run as another user than the owner of the folder. */
  isForeign?: boolean;
};

const sqlite = (data: string) => `sqlite:${data}/linkgate.sqlite`;

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
  "a folder that cannot be created": {
    isForeign: true,
    prepare: (data) => sqlite(`${data}/inner`),
    message: "Cannot write {data}/inner: permission denied.",
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
  "the key of another database": {
    async prepare(data) {
      const ENCRYPTION_KEY = Buffer.alloc(32, 9).toString("base64url");
      const service = await startTestService({ DATABASE_URL: sqlite(data), ENCRYPTION_KEY });
      await service.close();
      return sqlite(data);
    },
    message: "ENCRYPTION_KEY is not the key that this database was created with",
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

function urlWith(changes: { username?: string; password?: string; pathname?: string }) {
  const url = new URL(database.url);
  Object.assign(url, changes);
  return url.href;
}
const { protocol, host } = engine === "sqlite" ? { protocol: "", host: "" } : new URL(database.url);
const at = (who: string, place = host, path = name) =>
  `DATABASE_URL: cannot connect to ${protocol}//${who}@${place}/${path}`;

const UNKNOWN_USER =
  engine === "postgres" ? "the user doesn't exist or can't log in" : "wrong user or password";
const SERVERS: Record<string, Fault> = {
  "a database that doesn't exist": {
    prepare: () => urlWith({ pathname: "/nowhere" }),
    message: `${at(new URL(database.url).username, host, "nowhere")} (the database doesn't exist). Create it first.`,
  },
  "a user who may not create tables": {
    async prepare() {
      const account = await createUser(name);
      if (engine === "mysql") await admin.knex.raw(`grant select on ${name}.* to ${account}`);
      return urlWith({ username: name, password: "right" });
    },
    message: `${at(name)} (the user lacks privileges). Grant it all privileges on the database.`,
  },
  "a user who doesn't exist": {
    prepare: () => urlWith({ username: "stranger", password: "secret" }),
    message: `${at("stranger")} (${UNKNOWN_USER}). Check the user and password.`,
  },
};
if (engine === "postgres")
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
if (engine === "mysql") {
  const LIMITED = `${name}_few`;
  SERVERS["a user who has the allowed number of connections"] = {
    async prepare() {
      const account = await createUser(LIMITED, "with max_user_connections 1");
      await admin.knex.raw(`grant all on ${name}.* to ${account}`);
      const url = urlWith({ username: LIMITED, password: "right" });
      const held = openDatabase(url);
      await held.knex.raw("select 1");
      releases.push(held.close);
      return url;
    },
    message: `${at(LIMITED)} (too many connections). Raise the server's limit, or use fewer processes.`,
  };
}

const faults = engine === "sqlite" ? SQLITE : SERVERS;
// Only root can start a process as another user, who can't read a checkout in root's home.
const canSwitchUser = spawnSync(process.execPath, ["--version"], { uid: UNPRIVILEGED_UID }).status === 0;

async function messageOf(settings: Record<string, string>): Promise<string | undefined> {
  try {
    rejectLostDatabase(readSettings(settings));
    const service = await startTestService(settings);
    await service.close();
    return undefined;
  } catch (error) {
    return (toFileError(error) as Error).message;
  }
}

for (const [index, [what, { prepare, message, isForeign }]] of Object.entries(faults).entries()) {
  const title = `${what} is reported in one sentence`;
  if (isForeign && !canSwitchUser) {
    skip(title, "it needs root, and a checkout that other users can read");
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
      ...(/lost/.test(what) ? { ENCRYPTION_KEY_FILE: "" } : { ENCRYPTION_KEY: KEY }),
    };
    const expected = message.replaceAll("{data}", data);
    if (!isForeign) t.is(await messageOf({ DATABASE_TIMEOUT: "10", ...settings }), expected);
    // The first as its operator sees it, too.
    if (index > 0 && !isForeign) return;
    const options = { cwd, settings, ...(isForeign && { uid: UNPRIVILEGED_UID }) };
    t.like(await endingOf(startServer(options)), { code: 1, stdout: "", stderr: `${expected}\n` });
    const refusal = await refusalOf(["org", "create", "Acme"], options);
    t.deepEqual(refusal, { code: "failed", message: expected });
  });
}

if (engine !== "sqlite")
  test("a database server that never responds is reported in one sentence", async (t) => {
    const silent = await startTcpProxy(database.url);
    await silent.cut("silence");
    const DATABASE_URL = silent.through(urlWith({ username: "ada", password: "secret" }));
    const settings = { DATABASE_URL, DATABASE_TIMEOUT: "1", ENCRYPTION_KEY: KEY };
    const sentence = "(timed out). Check the host and port, and that the server is running.";
    t.is(await messageOf(settings), `${at("ada", new URL(DATABASE_URL).host)} ${sentence}`);
  });

if (engine === "sqlite")
  test("a wrong setting ends the server with one sentence, without a stack or a secret", async (t) => {
    const settings = { DATABASE_URL: "mysql://ada:hunter2@db1:3306,db2:3306/linkgate" };
    const { code, stdout, stderr } = await endingOf(startServer({ cwd: folders, settings }));
    t.like({ code, stdout }, { code: 1, stdout: "" });
    t.regex(stderr, /^Invalid settings:\n {2}DATABASE_URL must [^\n]+\n$/);
    t.notRegex(stderr, /hunter/);
  });

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

test("a server logs a database error without the SQL and the values of the request", async (t) => {
  const { server, url } = await start();
  await knex.schema.renameTable("users", "missing_users");
  const answer = await postForm(`${url}/auth/login`, { username: SECRET, password: SECRET });
  t.is(answer.status, 500);
  await knex.schema.renameTable("missing_users", "users");
  const { stdout } = await server.stop();
  const [logged] = stdout.split("\n").filter((line) => line.startsWith("{"));
  const { err } = JSON.parse(logged ?? "{}") as { err?: Record<string, unknown> };
  t.regex(String(err?.code), /^\w+$/);
  t.regex(String(err?.message), /table|relation/i);
  t.false(stdout.includes(SECRET), logged);
  t.notRegex(stdout, /select/i);
});
