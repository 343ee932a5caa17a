import test from "ava";
import { advanceClock } from "../../harness/clock.ts";
import { DAY_MS, date, insertAt, partitionsOf } from "../../harness/database/partitions.ts";
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
}
