import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import type { Knex } from "knex";
import { readClock } from "../../../adapters/backlog.ts";
import { rowsOf } from "../../../adapters/database/engine.ts";
import { isCanceled } from "../../../adapters/database/errors.ts";
import { openDatabase } from "../../../adapters/database/index.ts";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { atOnce, clickAt, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

export const databases = "all";

const storage = await createTestStorage();

const { organization } = await storage.first.organizations.create("Commits", "growth", OPERATOR);

test.after.always(async () => {
  await Promise.all([first.close(), second.close()]);
  await storage.close();
});

const first = openDatabase(storage.url);
const second = openDatabase(storage.url);
const connections = [first, second];

const leases = (knex: Knex, name: string) => knex("leases").where({ name });
const put = (knex: Knex, name: string, value = 0) =>
  knex("leases").insert({ name, holder: "a process", expires_at: value });
const counted = async (name: string): Promise<number | undefined> =>
  (await leases(storage.database.knex, name).first("expires_at"))?.expires_at;

/** Reads, yields to others, then writes. */
async function increment(trx: Knex, name: string) {
  await leases(trx, name).update({ holder: "another process" }); // locks the row
  const row = await leases(trx, name).first("expires_at");
  await sleep(1);
  await leases(trx, name).update({ expires_at: Number(row?.expires_at) + 1 });
}

test("concurrent transactions that read before they write all succeed", async (t) => {
  await put(storage.database.knex, "read-first");
  await atOnce(20, (index) =>
    (connections[index % 2] as typeof first).transaction(async (trx) => {
      await leases(trx, "read-first").first("expires_at");
      await sleep(1);
      await leases(trx, "read-first").update({ expires_at: trx.raw("expires_at + 1") });
    }),
  );
  t.is(await counted("read-first"), 20);
});

test("concurrent transactions on one row lose no update", async (t) => {
  await put(storage.database.knex, "taken");
  await atOnce(20, (index) =>
    (connections[index % 2] as typeof first).transaction((trx) => increment(trx, "taken")),
  );
  t.is(await counted("taken"), 20);
});

test("a failed transaction is rolled back, and later ones succeed", async (t) => {
  await t.throwsAsync(
    first.transaction(async (trx) => {
      await put(trx, "half");
      throw new Error("something went wrong");
    }),
    { message: "something went wrong" },
  );
  await t.throwsAsync(
    first.transaction(async (trx) => {
      await put(trx, "half");
      await put(trx, "half");
    }),
  );
  t.is(await counted("half"), undefined);
  await first.transaction((trx) => put(trx, "whole"));
  t.is(await counted("whole"), 0);
});

test("uncommitted writes are invisible to others", async (t) => {
  await first.transaction(async (trx) => {
    await put(trx, "hidden");
    t.is(await counted("hidden"), undefined);
    t.is(await leases(first.knex, "hidden").first(), undefined);
  });
  t.is(await counted("hidden"), 0);
});

test("a transaction and concurrent single writes all succeed", async (t) => {
  await Promise.all([
    first.transaction(async (trx) => {
      await put(trx, "amid");
      await sleep(20);
      await leases(trx, "amid").update({ expires_at: 1 });
    }),
    atOnce(20, (index) => put((connections[index % 2] as typeof first).knex, `single-${index}`)),
  ]);
  t.is(await counted("amid"), 1);
  for (let index = 0; index < 20; index++) t.is(await counted(`single-${index}`), 0);
});

test("transactions that lock two rows in opposite order both succeed", async (t) => {
  await put(storage.database.knex, "left");
  await put(storage.database.knex, "right");
  let attempts = 0;
  const bothHold = barrier(2);
  const takeBoth = (database: typeof first, names: [string, string]) =>
    database.transaction(async (trx) => {
      attempts++;
      await leases(trx, names[0]).update({ expires_at: trx.raw("expires_at + 1") });
      // Without row locks, transactions run one after the other and never wait for each other.
      if (engine !== "sqlite") await bothHold();
      await leases(trx, names[1]).update({ expires_at: trx.raw("expires_at + 1") });
    });
  await Promise.all([takeBoth(first, ["left", "right"]), takeBoth(second, ["right", "left"])]);
  t.deepEqual([await counted("left"), await counted("right")], [2, 2]);
  // The transactions did conflict: one was rolled back and retried.
  t.is(attempts, engine === "sqlite" ? 2 : 3);
});

/** Returns a function whose promises resolve once it has been called `count` times. */
function barrier(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let arrived = 0;
  return () => {
    if (++arrived === count) resolve();
    return promise;
  };
}

test.serial("a completed write is visible to other connections immediately", async (t) => {
  for (let round = 0; round < 50; round++) {
    const slug = `seen-${round}`;
    const link = await storage.first.links.create(organization.id, OPERATOR, linkFields({ slug }));
    if ("taken" in link) throw new Error("taken");
    t.is((await storage.second.links.resolve(slug))?.id, link.id);
    await storage.second.links.update(organization.id, link.id, { title: "changed" }, OPERATOR, 1);
    t.is((await storage.first.links.find(organization.id, link.id))?.title, "changed");
    await storage.first.links.remove(organization.id, link.id, OPERATOR);
    t.is(await storage.second.links.find(organization.id, link.id), undefined);
  }
});

test.serial("each of many concurrent writes is visible once it completes", async (t) => {
  await atOnce(50, async (index) => {
    const slug = `alike-${index}`;
    await storage.first.links.create(organization.id, OPERATOR, linkFields({ slug }));
    t.truthy(await storage.second.links.resolve(slug));
  });
});

test.serial("a clean shutdown stores all pending clicks", async (t) => {
  const other = openStorage(storage.url, storage.encryptionKey);
  const link = await other.links.create(organization.id, OPERATOR, linkFields({ slug: "last-clicks" }));
  const destination = await other.links.resolve("last-clicks");
  if ("taken" in link || !destination) throw new Error("no link");
  await atOnce(30, () => other.links.click(destination, clickAt(Date.now())));
  await other.close();
  t.is((await storage.first.links.find(organization.id, link.id))?.clicks, 30);
});

if (engine === "sqlite") {
  /** Returns a counter that each commit of another connection increments. */
  const version = async () => {
    const [{ data_version }] = await storage.database.knex.raw("pragma data_version");
    return data_version as number;
  };

  test.serial("SQLite: concurrent writes share one commit", async (t) => {
    await storage.first.links.create(organization.id, OPERATOR, linkFields({ slug: "warm" }));
    const before = await version();
    await atOnce(100, (index) =>
      storage.first.links.create(organization.id, OPERATOR, linkFields({ slug: `one-${index}` })),
    );
    t.is((await version()) - before, 1);
  });

  test.serial("SQLite: sequential writes are committed one by one", async (t) => {
    const before = await version();
    for (let index = 0; index < 5; index++) {
      await storage.first.links.create(organization.id, OPERATOR, linkFields({ slug: `each-${index}` }));
      t.is((await version()) - before, index + 1);
    }
  });
}

test("the clock of the database is read with milliseconds", async (t) => {
  const { database, close } = await createTestStorage();
  t.teardown(close);
  // The database runs on this machine.
  const before = Date.now();
  const time = await readClock(database);
  t.true(time >= before - 1 && time <= Date.now() + 1, `${time}`);
});

if (engine !== "sqlite") {
  test("a long read has a limit of its own, and the session has its former limit afterward", async (t) => {
    const { knex, readAside, close } = openDatabase(storage.url, { timeoutMs: 1000 });
    t.teardown(close);
    const sleeping = (seconds: number) =>
      knex.select(knex.raw(engine === "postgres" ? "pg_sleep(?)" : "sleep(?)", [seconds]));
    t.is((await readAside(sleeping(3), 10_000)).length, 1);
    const error = await t.throwsAsync(readAside(sleeping(60), 500));
    t.true(isCanceled(error), error.message);
    const setting =
      engine === "postgres" ? "show statement_timeout" : "select @@max_statement_time as statement_timeout";
    const [row] = rowsOf<{ statement_timeout: unknown }>(await knex.raw(setting));
    t.is(Number.parseFloat(String(row?.statement_timeout)), 2);
  });
}
