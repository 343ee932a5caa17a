import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import { engine } from "../harness/database.ts";
import { atOnce, createTestStorage, linkFields, type TestStorage } from "../harness/storage.ts";

/** What each connection tells of how it commits: alone, and in a transaction. */
async function settingOf({ database }: TestStorage, question: string): Promise<unknown[]> {
  const ask = async (knex: { raw(sql: string): unknown }) => {
    const answer = (await knex.raw(question)) as { rows?: object[] } & object[];
    return Object.values((answer.rows ?? answer.flat())[0] as object)[0];
  };
  return [await ask(database.knex), await database.transaction(ask)];
}

if (engine === "postgres") {
  test("PostgreSQL: a commit waits for the disk, as the server does by itself", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    t.deepEqual(await settingOf(storage, "show synchronous_commit"), ["on", "on"]);
  });
}

if (engine === "mysql") {
  test("MariaDB: a commit waits for the disk, as the server does by itself, and nothing is cut to fit", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    t.deepEqual(await settingOf(storage, "select @@innodb_flush_log_at_trx_commit"), [1, 1]);
    const { organization } = await storage.first.organizations.create("Long", "growth", OPERATOR);
    const fields = linkFields({ slug: "x".repeat(65) });
    await t.throwsAsync(storage.first.links.create(organization.id, OPERATOR, fields), {
      code: "ER_DATA_TOO_LONG",
    });
  });
}

if (engine === "sqlite") {
  // Holds back what waits for the disk, so that a test sees who waits with it.
  const { fdatasync } = fs;
  let syncs = 0;
  let mayGoOn = Promise.resolve();
  const hold = (file: number, done: fs.NoParamCallback) => {
    syncs++;
    void mayGoOn.then(() => fdatasync(file, done));
  };
  const fail = (_file: number, done: fs.NoParamCallback) => {
    setImmediate(done, Object.assign(new Error("i/o error"), { code: "EIO" }));
  };
  syncWith(hold);

  function syncWith(sync: typeof hold) {
    Object.assign(fs, { fdatasync: sync });
    syncBuiltinESMExports();
  }

  const LOG = "pragma journal_mode";

  test.serial("SQLite: a write is answered when the disk has it", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    t.deepEqual(await settingOf(storage, LOG), ["wal", "wal"]);
    const { organization } = await storage.first.organizations.create("Durable", "growth", OPERATOR);
    const { promise, resolve } = Promise.withResolvers<void>();
    mayGoOn = promise;
    const before = syncs;
    let answered = 0;
    const writes = atOnce(10, async (index) => {
      await storage.first.links.create(organization.id, OPERATOR, linkFields({ slug: `slug-${index}` }));
      answered++;
    });
    while (!(await storage.second.links.resolve("slug-9"))) await new Promise((next) => setImmediate(next));
    t.is(answered, 0);
    t.is(syncs, before + 1);
    resolve();
    await writes;
    t.is(answered, 10);
    t.is(syncs, before + 1);
  });

  test.serial("SQLite: a transaction's own commit waits for the disk", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    const [, inTransaction] = await settingOf(storage, "pragma synchronous");
    t.is(inTransaction, 2); // FULL
  });

  test.serial("SQLite: with ?synchronous=normal nothing waits for the disk", async (t) => {
    const storage = await createTestStorage({ options: "?synchronous=normal" });
    t.teardown(storage.close);
    t.deepEqual(await settingOf(storage, LOG), ["wal", "wal"]);
    t.deepEqual(await settingOf(storage, "pragma synchronous"), [1, 1]); // NORMAL
    const before = syncs;
    const { organization } = await storage.first.organizations.create("Fast", "growth", OPERATOR);
    await atOnce(10, (index) =>
      storage.first.links.create(organization.id, OPERATOR, linkFields({ slug: `slug-${index}` })),
    );
    t.is(syncs, before);
  });

  test.serial(
    "SQLite: a group that overtakes one whose sync fails is not answered as done either",
    async (t) => {
      const storage = await createTestStorage();
      t.teardown(storage.close);
      t.teardown(() => syncWith(hold));
      const { organization } = await storage.first.organizations.create("Overtaken", "growth", OPERATOR);
      const create = (slug: string) =>
        storage.first.links.create(organization.id, OPERATOR, linkFields({ slug }));
      let started = 0;
      const overtaken = Promise.withResolvers<void>();
      syncWith((file, done) => {
        if (++started === 1) void overtaken.promise.then(() => fail(file, done));
        else
          fdatasync(file, (error) => {
            done(error);
            overtaken.resolve();
          });
      });
      const first = create("first");
      while (started === 0) await new Promise((next) => setImmediate(next));
      const others = atOnce(20, (index) => create(`other-${index}`).then(String, ({ name }) => name));
      await t.throwsAsync(first, { name: "StorageUnavailable" });
      t.deepEqual([...new Set(await others)], ["StorageUnavailable"]);
      t.is(started, 2, "the second group did not wait for the first");
    },
  );

  test.serial("SQLite: after a sync that failed nothing is answered as done", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    const { organization } = await storage.first.organizations.create("Failing", "growth", OPERATOR);
    syncWith(fail);
    const create = (slug: string) =>
      storage.first.links.create(organization.id, OPERATOR, linkFields({ slug }));
    await t.throwsAsync(create("lost"), { name: "StorageUnavailable" });
    syncWith(hold);
    await t.throwsAsync(create("later"), { name: "StorageUnavailable" });
    t.true(
      "id" in
        (await storage.second.links.create(organization.id, OPERATOR, linkFields({ slug: "elsewhere" }))),
    );
  });
}
