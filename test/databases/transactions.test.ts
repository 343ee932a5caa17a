import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import type { Knex } from "knex";
import { readClock } from "../../adapters/backlog.ts";
import { rowsOf } from "../../adapters/database/engine.ts";
import { isCanceled } from "../../adapters/database/errors.ts";
import type { UserRow } from "../../adapters/database/tables/accounts.ts";
import { lockUser } from "../../adapters/locks.ts";
import { atOnce, createTestStorage } from "../harness/database/storage.ts";
import { engine, inspect } from "../harness/database/test-database.ts";

export const databases = "all";

const storage = await createTestStorage();
const { createLink } = storage;
const organizationId = await storage.createOrganization();
const first = inspect(storage.url);
const second = inspect(storage.url);
const either = (index: number) => (index % 2 ? second : first);

const leases = (knex: Knex, name: string) => knex("leases").where({ name });
const put = (knex: Knex, name: string, value = 0) =>
  knex("leases").insert({ name, holder: "a process", expires_at: value });
const counted = async (name: string): Promise<number | undefined> =>
  (await leases(storage.database.knex, name).first("expires_at"))?.expires_at;

const INCREMENTS: Record<string, (trx: Knex, name: string) => Promise<unknown>> = {
  "that read before they write all succeed": async (trx, name) => {
    await leases(trx, name).first("expires_at");
    await sleep(1);
    await leases(trx, name).update({ expires_at: trx.raw("expires_at + 1") });
  },
  "on one row lose no update": async (trx, name) => {
    await leases(trx, name).update({ holder: "another process" }); // locks the row
    const row = await leases(trx, name).first("expires_at");
    await sleep(1);
    await leases(trx, name).update({ expires_at: Number(row?.expires_at) + 1 });
  },
};

for (const [title, increment] of Object.entries(INCREMENTS))
  test(`concurrent transactions ${title}`, async (t) => {
    const name = title.slice(0, 30);
    await put(storage.database.knex, name);
    await atOnce(20, (index) => either(index).transaction((trx) => increment(trx, name)));
    t.is(await counted(name), 20);
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

test("transactions that lock two rows in opposite order both succeed", async (t) => {
  await put(storage.database.knex, "left");
  await put(storage.database.knex, "right");
  let attempts = 0;
  const bothHold = Promise.withResolvers<void>();
  const takeBoth = (database: typeof first, names: [string, string]) =>
    database.transaction(async (trx) => {
      await leases(trx, names[0]).update({ expires_at: trx.raw("expires_at + 1") });
      if (++attempts === 2) bothHold.resolve();
      // Without row locks, transactions run one after the other and never wait for each other.
      if (engine !== "sqlite") await bothHold.promise;
      await leases(trx, names[1]).update({ expires_at: trx.raw("expires_at + 1") });
    });
  await Promise.all([takeBoth(first, ["left", "right"]), takeBoth(second, ["right", "left"])]);
  t.deepEqual([await counted("left"), await counted("right")], [2, 2]);
  // The transactions did conflict: one was rolled back and retried, or both if PostgreSQL noticed the deadlock in both.
  t.true(engine === "sqlite" ? attempts === 2 : attempts > 2, `${attempts} attempts`);
});

if (engine === "sqlite") {
  /** Returns a counter that each commit of another connection increments. */
  const version = async () => {
    const [{ data_version }] = await storage.database.knex.raw("pragma data_version");
    return data_version as number;
  };

  test.serial("SQLite: concurrent writes share one commit, and sequential ones have one each", async (t) => {
    await createLink(organizationId);
    const before = await version();
    await atOnce(100, () => createLink(organizationId));
    t.is((await version()) - before, 1);
    for (let count = 2; count < 7; count++) {
      await createLink(organizationId);
      t.is((await version()) - before, count);
    }
  });
}

test("the clock of the database is read with milliseconds", async (t) => {
  // The database runs on this machine.
  const before = Date.now();
  const time = await readClock(storage.database);
  t.true(time >= before - 1 && time <= Date.now() + 1, `${time}`);
});

if (engine !== "sqlite")
  test("a long read has a limit of its own, and the session has its former limit afterward", async (t) => {
    const { knex, readAside } = inspect(storage.url, { timeoutMs: 1000 });
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

test("a user who is locked by two transactions is changed by one after the other", async (t) => {
  const id = await storage.createUser(organizationId, "owner");
  let waiting: Promise<UserRow | undefined> | undefined;
  await second.knex("users").first("id"); // opens a connection
  await first.transaction(async (trx) => {
    await lockUser(trx, id);
    let isRead = false;
    waiting = second.transaction(async (other) => {
      const user = await lockUser(other, id);
      isRead = true;
      return user;
    });
    // Long enough for a read that doesn't wait. SQLite queues the second transaction.
    for (let statement = 0; statement < 200 && !isRead; statement++)
      await trx("users").where({ id }).first("id");
    await trx("users").where({ id }).update({ disabled_at: 1 });
  });
  t.is((await waiting)?.disabled_at, 1);
});
