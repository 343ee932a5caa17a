import { randomBytes } from "node:crypto";
import test from "ava";
import { copyDatabase } from "../../../adapters/copy/index.ts";
import { timeOfId } from "../../../adapters/crypto/ids.ts";
import { PartitionFailed } from "../../../adapters/database/partitions/convert.ts";
import { firstEventIdAt } from "../../../adapters/database/partitions/tables.ts";
import type { EventRow } from "../../../adapters/database/tables.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { DAY_MS, date, insertAt, insertTokensAt, partitionsOf } from "../../harness/database/partitions.ts";
import { atOnce, createTestStorage, type TestStorage } from "../../harness/database/storage.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";

const open: TestStorage[] = [];
test.after.always(() => Promise.all(open.map(({ close }) => close())));

async function createStorage(): Promise<TestStorage> {
  const storage = await createTestStorage();
  open.push(storage);
  return storage;
}

if (engine === "postgres") describePartitions();
else {
  test("SQLite, MariaDB: tables can't be partitioned, and nothing changes", async (t) => {
    const { first } = await createStorage();
    const error = await t.throwsAsync(first.partition([]), { instanceOf: PartitionFailed });
    t.is(error.code, "unsupported_database");
    t.is((await first.purgeExpired())?.dropped_partitions, undefined);
  });
}

function describePartitions() {
  test("tables are partitioned once, and keep their rows, keys, indexes and grants", async (t) => {
    const storage = await createStorage();
    const { first, database } = storage;
    const { knex } = database;
    const ids = await insertAt(storage, Date.now());
    await knex.raw("grant select on deliveries to pg_monitor");
    const indexes = async () =>
      (
        await knex.raw(
          "select indexname from pg_indexes where tablename in ('events', 'deliveries') order by 1",
        )
      ).rows.map(({ indexname }: { indexname: string }) => indexname);
    const before = await indexes();

    t.deepEqual(await first.partition([]), {
      partitioned: ["deliveries", "events"],
      already_partitioned: [],
    });
    t.deepEqual(await first.partition([]), {
      partitioned: [],
      already_partitioned: ["deliveries", "events"],
    });
    t.deepEqual(await first.partition(["click_stats"]), {
      partitioned: ["click_stats"],
      already_partitioned: [],
    });

    // Each partition has the unique index of the chain, because it doesn't contain the partitioned key.
    t.deepEqual(
      await indexes(),
      before.filter((name: string) => name !== "events_chain"),
    );
    const start = Date.now() - (Date.now() % DAY_MS) + 3 * DAY_MS;
    t.deepEqual(await partitionsOf(storage, "deliveries"), [
      `deliveries_${date(start)}`,
      `deliveries_before_${date(start)}`,
      "deliveries_default",
    ]);
    t.deepEqual(
      (await knex("deliveries").orderBy("event_id")).map(({ event_id }) => event_id),
      ids,
    );
    t.is((await knex("deliveries_default" as never)).length, 0);
    const { rows } = await knex.raw(
      "select has_table_privilege('pg_monitor', 'deliveries', 'select') as may",
    );
    t.true(rows[0].may);
    await t.throwsAsync(knex("events").insert((await knex("events").first()) as EventRow), { code: "23505" });
  });

  test("the table of tokens becomes the default partition, for keys without a time", async (t) => {
    const storage = await createStorage();
    const { first, database } = storage;
    const { knex } = database;
    const now = Date.now();
    const boundary = now - (now % DAY_MS) + 3 * DAY_MS;
    const early = await insertTokensAt(storage, now);
    t.deepEqual(await first.partition(["tokens"]), { partitioned: ["tokens"], already_partitioned: [] });
    t.deepEqual(await partitionsOf(storage, "tokens"), [`tokens_${date(boundary)}`, "tokens_default"]);

    const late = await insertTokensAt(storage, boundary);
    const hash = randomBytes(32).toString("base64url");
    await knex("tokens").insert({ ...(await knex("tokens").first()), id_hash: hash } as never);
    const keysIn = async (table: string) =>
      (await knex(table as "tokens")).map(({ id_hash }) => id_hash).toSorted();
    t.deepEqual(await keysIn("tokens_default"), [...early, hash].toSorted());
    t.deepEqual(await keysIn(`tokens_${date(boundary)}`), late.toSorted());
    for (const id_hash of [early[0], late[0], hash] as string[]) {
      const [row] = await knex("tokens").where({ id_hash });
      await t.throwsAsync(knex("tokens").insert(row as never), { code: "23505" });
    }
    const { rows } = await knex.raw(
      "select conname from pg_constraint where contype = 'c' and conrelid::regclass::text like 'tokens%'",
    );
    t.deepEqual(rows, []);
  });

  test("events are partitioned by day if the operator chooses so, and that isn't changed", async (t) => {
    const storage = await createStorage();
    const { first } = storage;
    const start = Date.now() - (Date.now() % DAY_MS) + 3 * DAY_MS;
    const ids = await insertAt(storage, Date.now());
    const steps: string[] = [];
    t.deepEqual(await first.partition(["events"], { unit: "day", onStep: (text) => steps.push(text) }), {
      partitioned: ["events"],
      already_partitioned: [],
    });
    const { rows: settings } = await storage.database.knex.raw(
      "select current_setting('max_locks_per_transaction')::int as locks",
    );
    t.is(
      steps.some((text) => text.includes("max_locks_per_transaction")),
      settings[0].locks < 512,
    );
    const [late] = await insertAt(storage, start);
    const day = await storage.database.knex(`events_${date(start)}` as "events");
    t.deepEqual(
      day.map(({ id }) => id).filter((id) => ids.includes(id) || id === late),
      [late],
    );
    const { rows } = await storage.database.knex.raw(
      "select pg_get_expr(relpartbound, oid) as bound from pg_class where oid = to_regclass(?)",
      [`events_${date(start)}`],
    );
    t.true(rows[0].bound.includes(firstEventIdAt(start + DAY_MS)));

    const again = { partitioned: [], already_partitioned: ["events"] };
    t.deepEqual(await first.partition(["events"]), again);
    t.deepEqual(await first.partition(["events"], { unit: "day" }), again);
    const error = await t.throwsAsync(first.partition([], { unit: "month" }), {
      instanceOf: PartitionFailed,
    });
    t.like(error, { code: "already_partitioned" });
    // Nothing else was converted before that was found.
    t.deepEqual(await partitionsOf(storage, "deliveries"), []);
  });

  test("what can't be partitioned is refused, and stays as it is", async (t) => {
    const { first, database } = await createStorage();
    const unknown = await t.throwsAsync(first.partition(["users"]), { instanceOf: PartitionFailed });
    t.is(unknown.code, "unknown_table");
    await database.knex.raw("create view failed as select * from deliveries where status = 'failed'");
    const dependent = await t.throwsAsync(first.partition([]), { instanceOf: PartitionFailed });
    t.like(dependent, { code: "has_dependents" });
    t.regex(dependent.message, /the view failed/);
  });

  // The locks of a dump and of a vacuum.
  for (const mode of ["access share", "share update exclusive"]) {
    test(`a conversion waits for a transaction with the lock ${mode}, and requests don't`, async (t) => {
      const storage = await createStorage();
      const { first, second, database } = storage;
      const other = await database.knex.transaction();
      await other.raw(`lock table deliveries in ${mode} mode`);
      let isConverted = false;
      const converted = first.partition(["deliveries"]).then(() => (isConverted = true));
      for (let round = 0; round < 20; round++) await second.organizations.create("Busy", "growth", OPERATOR);
      await insertAt(storage, Date.now());
      t.false(isConverted);
      await other.commit();
      t.true(await converted);
    });
  }

  test("two processes convert a table once", async (t) => {
    const { first, second } = await createStorage();
    const results = await Promise.allSettled([first.partition([]), second.partition([])]);
    const fulfilled = results.filter(({ status }) => status === "fulfilled");
    t.true(fulfilled.length >= 1);
    for (const result of results)
      if (result.status === "rejected") t.is((result.reason as PartitionFailed).code, "busy");
    t.deepEqual((await second.partition([])).already_partitioned, ["deliveries", "events"]);
  });

  test("entries of two processes get one place each, also across partitions", async (t) => {
    const storage = await createStorage();
    const { first, second, database } = storage;
    await first.partition([]);
    // The lock on the head of the chain decides, without the unique index of each partition.
    for (const name of await partitionsOf(storage, "events"))
      await database.knex.raw("drop index ??", [name.includes("before") ? "events_chain" : `${name}_chain`]);
    const { organization } = await first.organizations.create("Log", "growth", OPERATOR);
    const now = Date.now();
    // Before and after the boundary, in both orders, and where no partition is.
    for (const days of [0, 4, 1, 60, 5, 2]) {
      const ids = await insertAt(storage, now + days * DAY_MS, 20, true);
      await database.knex("events").whereIn("id", ids).update({ organization_id: organization.id });
      const { premium, growth } = { premium: "premium", growth: "growth" } as const;
      await atOnce(40, async (index) => {
        const store = index % 2 ? first : second;
        await store.organizations.setPlan(organization.id, index % 2 ? premium : growth, OPERATOR);
        await store.auditChain.append(organization.id);
      });
    }
    const [report] = await second.verifyAuditLogs(organization.id);
    const rows = await database.knex("events").where({ organization_id: organization.id }).orderBy("seq");
    t.like(report, { ok: true, first_seq: 1, last_seq: rows.length });
    t.true(rows.length >= 120);
    t.deepEqual(
      rows.map(({ seq }) => Number(seq)),
      rows.map((_, index) => index + 1),
    );
    t.true(new Set(rows.map(({ id }) => date(timeOfId(id)))).size > 4);
  });

  test("a partitioned database is copied, and receives a copy", async (t) => {
    const storage = await createStorage();
    const { first, database } = storage;
    await first.partition([]);
    await first.organizations.create("Copied", "growth", OPERATOR);
    await insertAt(storage, Date.now());
    await insertAt(storage, Date.now() + 4 * DAY_MS);
    const plain = await createTestDatabase({ empty: true, on: "sqlite" });
    const run = { command: "copy", arguments: [], options: {}, osUser: "test", host: "test" };
    const options = { onTable() {}, run };
    await copyDatabase(storage.url, plain.url, options);

    const target = await createStorage();
    await target.database.knex("sealed_keys").delete();
    await target.first.partition([]);
    await copyDatabase(plain.url, target.url, options);
    t.is((await target.database.knex("deliveries")).length, (await database.knex("deliveries")).length);
    t.true((await partitionsOf(target, "events")).length > 2);
    t.true((await target.first.verifyAuditLogs()).every(({ ok }) => ok));
    await plain.drop();
  });
}
