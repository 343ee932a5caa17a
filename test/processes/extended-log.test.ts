import { randomBytes, randomUUID } from "node:crypto";
import { rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import Sqlite from "better-sqlite3";
import { openStorage } from "../../adapters/index.ts";
import { mountSmallDisk } from "../harness/database/small-disk.ts";
import { atOnce } from "../harness/database/storage.ts";
import { createTestDatabase, engine } from "../harness/database/test-database.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";
import { populate } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";

const MEGABYTE = 2 ** 20;
// What the log is extended by, and far more than the writes of these tests take.
const AHEAD = 64 * MEGABYTE;
const WRITTEN_MAX = 64 * MEGABYTE;
const CONCURRENCY = 16;

test.after.always(stopPrograms);

/** Starts a server on a database file, with an app. */
async function start(file: string, key = randomBytes(32), node?: string) {
  const url = `sqlite:${file}`;
  const server = startServer({
    ...(node && { node }),
    settings: {
      DATABASE_URL: url,
      ENCRYPTION_KEY: key.toString("base64url"),
      PORT: "0",
      RATE_LIMIT: "off",
      LOG_LEVEL: "error",
    },
  });
  const storage = openStorage(url, key);
  const seed = populate(await addressOf(server), storage);
  const app = await seed.createOrganization();
  // From here on, only the server has the database open.
  await storage.close();
  return {
    server,
    logBytes: () => statSync(`${file}-wal`).size,
    /** Requests tokens until `isEnough`. Adds each one that the server has confirmed. */
    async load(confirmed: string[], isEnough: () => boolean) {
      await atOnce(CONCURRENCY, async () => {
        while (!isEnough()) confirmed.push(await seed.token(app));
      });
    },
  };
}

if (engine === "sqlite") {
  test.serial("SQLite: after kill -9 of a busy server, its extended log loses no write", async (t) => {
    const { url, drop } = await createTestDatabase();
    t.teardown(drop);
    const file = url.replace(/^sqlite:/, "");
    const key = randomBytes(32);
    const { server, logBytes, load } = await start(file, key);
    const confirmed: string[] = [];
    await load(confirmed, () => logBytes() >= AHEAD);
    const extended = confirmed.length;
    // Commits while the log is being extended, and into the zeros.
    await load(confirmed, () => confirmed.length >= extended + 3000);
    const killed = load(confirmed, () => {
      if (confirmed.length >= extended + 3200) server.kill("SIGKILL");
      return false;
    }).catch(() => {});
    await Promise.all([server.ended, killed]);

    t.true(logBytes() < AHEAD + WRITTEN_MAX);
    const reopened = openStorage(url, key);
    for (const token of confirmed) t.truthy(await reopened.findActiveToken(token));
    await reopened.close();
    const database = new Sqlite(file);
    t.is(database.pragma("integrity_check", { simple: true }), "ok");
    database.close();
  });

  test.serial("SQLite: a file-size limit ends the extension of the log, not the checkpoints", async (t) => {
    const { url, drop } = await createTestDatabase();
    t.teardown(drop);
    const file = url.replace(/^sqlite:/, "");
    const limited = path.join(path.dirname(file), `limited-${randomUUID()}`);
    // In blocks of 512 bytes. The last megabyte of the log fits only in part.
    writeFileSync(limited, `#!/bin/sh\nulimit -f 81921\nexec "${process.execPath}" "$@"\n`, { mode: 0o700 });
    t.teardown(() => rmSync(limited));
    const { server, logBytes, load } = await start(file, randomBytes(32), limited);
    await load([], () => logBytes() >= 39 * MEGABYTE);
    const { code, stderr } = await server.stop();
    t.is(code, 0, stderr);
    t.is(stderr, "");
  });

  const TITLE = "SQLite: the log is not extended on a disk with little space";
  const disk = mountSmallDisk(192);
  if (disk) {
    test.after.always(() => disk.unmount());
    test.serial(TITLE, async (t) => {
      const { server, logBytes, load } = await start(path.join(disk.folder, "linkgate.sqlite"));
      const confirmed: string[] = [];
      await load(confirmed, () => confirmed.length >= 9000);
      t.true(logBytes() < AHEAD);
      await server.stop();
    });
  } else skip(TITLE, "an in-memory file system can't be mounted (needs Linux and root)");
}
