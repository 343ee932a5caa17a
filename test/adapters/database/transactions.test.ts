import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import type { Knex } from "knex";
import { openDatabase } from "../../../adapters/database/index.ts";
import { atOnce, createTestStorage } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

const storage = await createTestStorage();
const first = openDatabase(storage.url);
const second = openDatabase(storage.url);
const databases = [first, second];
test.after.always(async () => {
  await Promise.all([first.close(), second.close()]);
  await storage.close();
});

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
    (databases[index % 2] as typeof first).transaction(async (trx) => {
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
    (databases[index % 2] as typeof first).transaction((trx) => increment(trx, "taken")),
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
    atOnce(20, (index) => put((databases[index % 2] as typeof first).knex, `single-${index}`)),
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
