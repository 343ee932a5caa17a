import test from "ava";
import { advanceClock } from "../../harness/clock.ts";
import {
  DAY_MS,
  date,
  HOUR_MS,
  insertAt,
  insertTokensAt,
  partitionsOf,
} from "../../harness/database/partitions.ts";
import { createTestStorage, type TestStorage } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";
import { skip } from "../../harness/skip.ts";

const open: TestStorage[] = [];
test.after.always(() => Promise.all(open.map(({ close }) => close())));

async function createStorage(): Promise<TestStorage> {
  const storage = await createTestStorage();
  open.push(storage);
  return storage;
}

/** Returns the start of the UTC day. */
const startOfDay = () => Date.now() - (Date.now() % DAY_MS);

if (engine === "postgres") describePurge();
else skip("partitions are purged", "PostgreSQL");

function describePurge() {
  test.serial("expired days are dropped, and rows that don't expire soon keep theirs", async (t) => {
    const storage = await createStorage();
    const { first, database } = storage;
    const { knex } = database;
    await insertAt(storage, Date.now());
    await first.partition([]);
    advanceClock(3 * DAY_MS);
    t.is((await first.purgeExpired())?.dropped_partitions, undefined);
    // Three days are ahead.
    t.is((await partitionsOf(storage, "deliveries")).length, 2 + 4);
    const day = Date.now();
    await insertAt(storage, day);
    advanceClock(DAY_MS);
    await first.purgeExpired();
    await insertAt(storage, Date.now());
    const named = `deliveries_${date(day)}`;
    const chained = await insertAt(storage, Date.now(), 1, true);
    await first.auditChain.append();

    // All rows of the day have expired, or do so within a day: they wait for the end of their partition.
    advanceClock(29 * DAY_MS - 60_000);
    const early = await first.purgeExpired();
    t.like(early, { deliveries: 0 });
    t.true((await partitionsOf(storage, "deliveries")).includes(named));
    t.is((await first.backlog()).purgeSeconds, 0);

    advanceClock(120_000);
    const dropped = await first.purgeExpired();
    t.true(dropped?.dropped_partitions?.includes(named));
    t.like(dropped, { deliveries: 0 });
    t.false((await partitionsOf(storage, "deliveries")).includes(named));
    t.is((await knex.raw("select to_regclass(?) as oid", [named])).rows[0].oid, null);
    t.is((await knex("deliveries")).length, 4);

    // The log keeps its partition of events, whose other rows are deleted.
    advanceClock(2 * DAY_MS);
    const last = await first.purgeExpired();
    t.true((last?.events ?? 0) > 0);
    t.is((await knex("deliveries")).length, 0);
    t.deepEqual(
      (await knex("events").where({ organization_id: "org_1" })).map(({ id }) => id),
      chained,
    );
    t.true((await first.verifyAuditLogs()).every(({ ok }) => ok));
  });

  test.serial("events by day get a partition for each day, and expired ones are dropped", async (t) => {
    const storage = await createStorage();
    const { first } = storage;
    await first.partition(["events"], { unit: "day" });
    advanceClock(3 * DAY_MS);
    await first.purgeExpired();
    const today = startOfDay();
    const days = [0, 1, 2, 3].map((day) => `events_${date(today + day * DAY_MS)}`);
    t.deepEqual(
      (await partitionsOf(storage, "events")).filter((name) => /\d{8}$/.test(name) && !/before/.test(name)),
      days,
    );
    await insertAt(storage, Date.now());
    advanceClock(31 * DAY_MS);
    t.true((await first.purgeExpired())?.dropped_partitions?.includes(days[0] as string));
    t.false((await partitionsOf(storage, "events")).includes(days[0] as string));
  });

  test.serial("a partition that can't be locked is dropped by a later purge", async (t) => {
    const storage = await createStorage();
    const { first, database } = storage;
    await first.partition(["deliveries"]);
    advanceClock(3 * DAY_MS);
    const day = `deliveries_${date(Date.now())}`;
    await insertAt(storage, Date.now());
    advanceClock(31 * DAY_MS);
    const dump = await database.knex.transaction();
    await dump("deliveries").first();
    t.is((await first.purgeExpired())?.dropped_partitions, undefined);
    await dump.commit();
    t.true((await first.purgeExpired())?.dropped_partitions?.includes(day));
  });

  test.serial("rows are stored without a partition of their day, and delivered and purged", async (t) => {
    const storage = await createStorage();
    const { first, database } = storage;
    await first.partition([]);
    // No server has run for a week, or only one of an earlier version.
    advanceClock(10 * DAY_MS);
    await insertAt(storage, Date.now());
    t.is((await database.knex("deliveries_default" as never)).length, 3);
    await first.purgeExpired();
    const names = await partitionsOf(storage, "deliveries");
    // Not the day of the rows, but the following ones.
    t.false(names.includes(`deliveries_${date(Date.now())}`));
    t.true(names.includes(`deliveries_${date(Date.now() + DAY_MS)}`));
    advanceClock(31 * DAY_MS);
    t.like(await first.purgeExpired(), { deliveries: 3 });
    t.is((await database.knex("events")).length, 0);
  });

  test.serial("a day of tokens is dropped, or, while a long-lived one is in it, deleted", async (t) => {
    const storage = await createStorage();
    const { first, database } = storage;
    await first.partition(["tokens"]);
    const day = startOfDay() + 3 * DAY_MS;
    await insertTokensAt(storage, Date.now());
    advanceClock(DAY_MS);
    t.like(await first.purgeExpired(), { tokens: 3 });
    await insertTokensAt(storage, day);
    await insertTokensAt(storage, day + DAY_MS);
    const lasting = await insertTokensAt(storage, day + DAY_MS, { hours: 30 * 24 });

    advanceClock(3 * DAY_MS + 2 * HOUR_MS);
    const dropped = await first.purgeExpired();
    t.deepEqual(dropped?.dropped_partitions, [`tokens_${date(day)}`]);
    t.like(dropped, { tokens: 3 });
    t.true((await partitionsOf(storage, "tokens")).includes(`tokens_${date(day + DAY_MS)}`));
    t.deepEqual((await database.knex("tokens")).map(({ id_hash }) => id_hash).toSorted(), lasting.toSorted());
  });

  test.serial("tokens can be stored after a partition could not be created", async (t) => {
    const storage = await createStorage();
    const { first, database } = storage;
    await first.partition(["tokens"]);
    const day = startOfDay() + 4 * DAY_MS;
    // Of a process whose clock was wrong: the partition of that day isn't created.
    await insertTokensAt(storage, day);
    advanceClock(2 * DAY_MS);
    await first.purgeExpired();
    const names = await partitionsOf(storage, "tokens");
    t.deepEqual(
      [names.includes(`tokens_${date(day)}`), names.includes(`tokens_${date(day + DAY_MS)}`)],
      [false, true],
    );
    await insertTokensAt(storage, day);

    // The partition of the last day can't be created either, after which none follows.
    await insertTokensAt(storage, day + 2 * DAY_MS);
    advanceClock(DAY_MS);
    await first.purgeExpired();
    await insertTokensAt(storage, day + 2 * DAY_MS);

    // A process was killed while it created a partition.
    await database.knex.raw(
      "alter table tokens_default add constraint without_next_partition check (id_hash < '0') not valid",
    );
    await t.throwsAsync(insertTokensAt(storage, day), { code: "23514" });
    await first.purgeExpired();
    t.is((await insertTokensAt(storage, day)).length, 3);
  });
}
