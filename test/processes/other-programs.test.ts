import { existsSync, readFileSync, statSync } from "node:fs";
import test from "ava";
import { sqliteFile } from "../../adapters/database/engine.ts";
import { atOnce } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { startOnNewDatabase } from "../harness/new-server.ts";
import { Program, runCommand } from "../harness/program.ts";
import { skip } from "../harness/skip.ts";

const LANES = 8;

// A program that opens the file, reads, writes a row, and closes it.
const VISITOR = `
const database = new (require("better-sqlite3"))(process.argv[1], { timeout: 30_000 });
database.prepare("select count(*) from links").get();
database.exec("create table if not exists other_program (visit integer)");
database.exec("insert into other_program values (1)");
database.close();
`;

const LOCKS = "/proc/locks";
const TITLE =
  "SQLite: the server keeps its lock and its log through other programs, commands and a checkpoint";

function holdsLock(pid: number, file: string): boolean {
  const { ino } = statSync(file);
  const lock = new RegExp(`POSIX +ADVISORY +\\w+ +${pid} +[0-9a-f]+:[0-9a-f]+:${ino} `);
  return lock.test(readFileSync(LOCKS, "utf8"));
}

if (engine === "sqlite" && !existsSync(LOCKS)) skip(TITLE, "only Linux lists the locks of processes");
else if (engine === "sqlite")
  test.serial(TITLE, async (t) => {
    const { server, settings, storage, stop, ...own } = await startOnNewDatabase({ LOG_LEVEL: "error" });
    const app = await own.createOrganization();
    // From here on, this process doesn't have the database open: the last one that closes it would delete the log.
    await storage.close();
    const file = sqliteFile(settings.DATABASE_URL);
    const log = statSync(`${file}-wal`).ino;
    const isKept = (after: string) => {
      t.true(holdsLock(server.pid, file), after);
      t.is(statSync(`${file}-wal`).ino, log, after);
    };
    isKept("the start");
    for (let visit = 0; visit < 2; visit++) {
      const { code, stderr } = await new Program(process.execPath, ["-e", VISITOR, file]).ended;
      t.is(code, 0, stderr);
      isKept("a visit");
      await own.token(app);
    }
    for (const command of ["doctor", "org list", "keys rotate signing", `backup ${file}.backup`]) {
      const { code, stderr } = await runCommand(command.split(" "), { settings });
      t.is(code, 0, `${command}: ${stderr}`);
      isKept(command);
    }
    const { mtimeMs } = statSync(file);
    await atOnce(LANES, async () => {
      while (statSync(file).mtimeMs === mtimeMs) await own.token(app);
    });
    isKept("a checkpoint");
    const { code, stdout, stderr } = await server.stop();
    t.deepEqual([code, stdout.includes('"level":"error"'), stderr], [0, false, ""]);
  });
