import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import { apiAt } from "../harness/clients/api.ts";
import { atOnce } from "../harness/database/storage.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { addressOf, Program, runCommand, startServer, stopPrograms } from "../harness/program.ts";
import { populate } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";

const LANES = 8;
const VISITS = 14;
const VISIT_EVERY_MS = 700;

const READ_AND_WRITE = `
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=30)
database.execute("select count(*) from links").fetchone()
database.execute("create table if not exists other_program (visit integer)")
database.execute("insert into other_program values (1)")
database.commit()
database.close()
`;
const SQL =
  ".timeout 30000\nselect count(*) from links;\ncreate table if not exists other_program (visit integer);\ninsert into other_program values (1);\n";

test.after.always(stopPrograms);

function isInstalled(command: string): boolean {
  try {
    execFileSync(command, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Programs that open the file, read, write a row, and close it. */
const visitors = [
  { command: "python3", args: (file: string) => ["-c", READ_AND_WRITE, file], input: "" },
  { command: "sqlite3", args: (file: string) => [file], input: SQL },
].filter(({ command }) => isInstalled(command));

async function visit(file: string, number: number): Promise<void> {
  const { command, args, input } = visitors[number % visitors.length] as (typeof visitors)[number];
  const program = new Program(command, args(file));
  program.write(input);
  const { code, stderr } = await program.ended;
  if (code !== 0) throw new Error(stderr);
}

/** Starts a server on a new database, with an app. */
async function start(workers: number) {
  const { url, drop } = await createTestDatabase();
  const key = randomBytes(32);
  const settings = {
    DATABASE_URL: url,
    ENCRYPTION_KEY: key.toString("base64url"),
    PORT: "0",
    WORKERS: String(workers),
    RATE_LIMIT: "off",
    LOG_LEVEL: "error",
  };
  const server = startServer({ settings });
  const address = await addressOf(server);
  const open = () => openStorage(url, key);
  const storage = open();
  const seed = populate(address, storage);
  const app = await seed.createOrganization();
  // From here on, this process doesn't have the database open.
  await storage.close();
  return {
    file: url.replace(/^sqlite:/, ""),
    server,
    settings,
    open,
    drop,
    createLink: apiAt(address, await seed.token(app)).createLink,
    requestToken: () => seed.token(app),
  };
}

const TITLE = "SQLite: while other programs open and close the database, a kill -9 loses nothing";

if (engine === "sqlite" && visitors.length === 0) skip(TITLE, "neither python3 nor sqlite3 is installed");
else if (engine === "sqlite")
  for (const workers of [1, 2]) {
    test.serial(`${TITLE}, with WORKERS=${workers}`, async (t) => {
      const { file, server, open, drop, createLink, requestToken } = await start(workers);
      t.teardown(drop);
      const slugs: string[] = [];
      const tokens: string[] = [];
      let isOver = false;

      const load = atOnce(LANES, async () => {
        while (!isOver) {
          slugs.push((await createLink()).slug);
          tokens.push(await requestToken());
        }
      });
      for (let number = 0; number < VISITS; number++) {
        await visit(file, number);
        await pause(VISIT_EVERY_MS);
      }
      isOver = true;
      await Promise.race([load, server.ended]);
      server.killGroup();
      const { stdout, stderr } = await server.ended;

      const reopened = open();
      t.teardown(reopened.close);
      const missing = { links: 0, tokens: 0 };
      for (const slug of slugs) if (!(await reopened.links.resolve(slug))) missing.links++;
      for (const token of tokens) if (!(await reopened.findActiveToken(token))) missing.tokens++;
      const what = `of ${slugs.length} links and ${tokens.length} tokens`;
      t.deepEqual(missing, { links: 0, tokens: 0 }, what);
      t.true(slugs.length > 0 && tokens.length > 0, what);
      t.is(stderr, "");
      t.notRegex(stdout, /"level":"error"/);
    });
  }

const LOCKS = "/proc/locks";
const LOCK_TITLE = "SQLite: the server holds its lock on the database through every command and a checkpoint";
const COMMANDS = [
  "doctor",
  "migrate",
  "org list",
  "keys list",
  "keys rotate signing",
  "sweep",
  "audit verify",
  "backup backup.sqlite",
];

const SERVER_SWEEPS = /^sweep: Another process is deleting expired rows\. Try again later\.$/m;

/** Returns whether a process holds a lock on a file. */
function holdsLock(pid: number, file: string): boolean {
  const { ino } = statSync(file);
  const lock = new RegExp(`POSIX +ADVISORY +\\w+ +${pid} +[0-9a-f]+:[0-9a-f]+:${ino} `);
  return lock.test(readFileSync(LOCKS, "utf8"));
}

if (engine === "sqlite" && !existsSync(LOCKS)) skip(LOCK_TITLE, "only Linux lists the locks of processes");
else if (engine === "sqlite")
  test.serial(LOCK_TITLE, async (t) => {
    const { file, server, settings, requestToken, drop } = await start(1);
    t.teardown(drop);
    t.true(holdsLock(server.pid, file));
    for (const command of COMMANDS) {
      const words = command.replace("backup.sqlite", `${file}.backup`).split(" ");
      const { code, stderr } = await runCommand(words, { settings });
      // Five seconds after its start, the server deletes expired rows itself.
      if (!SERVER_SWEEPS.test(stderr)) t.is(code, 0, `${command}: ${stderr}`);
      t.true(holdsLock(server.pid, file), command);
    }
    const { mtimeMs } = statSync(file);
    await atOnce(LANES, async () => {
      while (statSync(file).mtimeMs === mtimeMs) await requestToken();
    });
    t.true(holdsLock(server.pid, file), "after a checkpoint");
    t.is((await server.stop()).code, 0);
  });
