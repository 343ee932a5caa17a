import { existsSync, readFileSync, statSync } from "node:fs";
import test from "ava";
import { sqliteFile } from "../../adapters/database/engine.ts";
import { openStorage } from "../../adapters/index.ts";
import { apiAt } from "../harness/clients/api.ts";
import { atOnce } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { startOnNewDatabase } from "../harness/new-server.ts";
import { Program, runCommand, stopPrograms } from "../harness/program.ts";
import { skip } from "../harness/skip.ts";
import { until } from "../harness/webhooks.ts";

const LANES = 8;
const VISITS = 4;
// The requests between two visits.
const REQUESTS = 50;

// A program that opens the file, reads, writes a row, and closes it.
const VISITOR = `
const database = new (require("better-sqlite3"))(process.argv[1], { timeout: 30_000 });
database.prepare("select count(*) from links").get();
database.exec("create table if not exists other_program (visit integer)");
database.exec("insert into other_program values (1)");
database.close();
`;

test.after.always(stopPrograms);

/** Starts a server on a new database, with an app. */
async function start(WORKERS = "1") {
  const own = await startOnNewDatabase({ WORKERS, LOG_LEVEL: "error" });
  const app = await own.createOrganization();
  // From here on, this process doesn't have the database open.
  await own.storage.close();
  const { DATABASE_URL } = own.settings;
  return {
    ...own,
    file: sqliteFile(DATABASE_URL),
    open: () => openStorage(DATABASE_URL, own.key),
    createLink: apiAt(own.url, await own.token(app)).createLink,
    requestToken: () => own.token(app),
  };
}

const TITLE = "SQLite: while other programs open and close the database, a kill -9 loses nothing";

if (engine === "sqlite")
  for (const WORKERS of ["1", "2"])
    test.serial(`${TITLE}, with WORKERS=${WORKERS}`, async (t) => {
      const { file, server, open, stop, createLink, requestToken } = await start(WORKERS);
      t.teardown(stop);
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
        const { code, stderr } = await new Program(process.execPath, ["-e", VISITOR, file]).ended;
        t.is(code, 0, stderr);
        const before = slugs.length;
        await until(async () => slugs.length > before + REQUESTS || undefined);
      }
      isOver = true;
      await Promise.race([load, server.ended]);
      server.killGroup();
      const { stdout, stderr } = await server.ended;

      const reopened = open();
      t.teardown(reopened.close);
      t.true(slugs.length > 0 && tokens.length > 0);
      for (const slug of slugs) t.truthy(await reopened.links.resolve(slug));
      for (const token of tokens) t.truthy(await reopened.findActiveToken(token));
      t.is(stderr, "");
      t.notRegex(stdout, /"level":"error"/);
    });

const LOCKS = "/proc/locks";
const LOCK_TITLE = "SQLite: the server holds its lock on the database through every command and a checkpoint";

/** Returns whether a process holds a lock on a file. */
function holdsLock(pid: number, file: string): boolean {
  const { ino } = statSync(file);
  const lock = new RegExp(`POSIX +ADVISORY +\\w+ +${pid} +[0-9a-f]+:[0-9a-f]+:${ino} `);
  return lock.test(readFileSync(LOCKS, "utf8"));
}

if (engine === "sqlite" && !existsSync(LOCKS)) skip(LOCK_TITLE, "only Linux lists the locks of processes");
else if (engine === "sqlite")
  test.serial(LOCK_TITLE, async (t) => {
    const { file, server, settings, requestToken, stop } = await start();
    t.teardown(stop);
    t.true(holdsLock(server.pid, file));
    for (const command of ["doctor", "org list", "keys rotate signing", `backup ${file}.backup`]) {
      const { code, stderr } = await runCommand(command.split(" "), { settings });
      t.is(code, 0, `${command}: ${stderr}`);
      t.true(holdsLock(server.pid, file), command);
    }
    const { mtimeMs } = statSync(file);
    await atOnce(LANES, async () => {
      while (statSync(file).mtimeMs === mtimeMs) await requestToken();
    });
    t.true(holdsLock(server.pid, file), "after a checkpoint");
    t.is((await server.stop()).code, 0);
  });
