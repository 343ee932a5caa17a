import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import test from "ava";
import type { Knex } from "knex";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { atOnce, createTestStorage, linkFields, type TestStorage } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

/** Queries a setting of the database, outside and inside a transaction. */
async function settingOf({ database }: TestStorage, query: string): Promise<unknown[]> {
  const ask = async (knex: { raw(sql: string): unknown }) => {
    const answer = (await knex.raw(query)) as { rows?: object[] } & object[];
    return Object.values((answer.rows ?? answer.flat())[0] as object)[0];
  };
  return [await ask(database.knex), await database.transaction(ask)];
}

/** Creates an organization with a link: the first one also commits a share of the quota. */
async function createOrganization({ first }: TestStorage, name: string) {
  const { organization } = await first.organizations.create(name, "growth", OPERATOR);
  await first.links.create(organization.id, OPERATOR, linkFields({ slug: `${name.toLowerCase()}-first` }));
  return organization;
}

if (engine === "postgres") {
  test("PostgreSQL: a commit waits for the disk, as is the default", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    t.deepEqual(await settingOf(storage, "show synchronous_commit"), ["on", "on"]);
  });

  test("PostgreSQL: only a transaction that need not be durable doesn't wait for the disk", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    const ask = async (trx: Knex) => (await trx.raw("show synchronous_commit")).rows[0].synchronous_commit;
    t.is(await storage.database.transaction(ask, { isDurable: false }), "off");
    t.deepEqual(await settingOf(storage, "show synchronous_commit"), ["on", "on"]);
  });
}

if (engine === "mysql") {
  test("MariaDB: a commit waits for the disk, as is the default, and too long values are rejected", async (t) => {
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
  // Delays syncs of the disk, so tests can observe which writes wait for them.
  const { fdatasync } = fs;
  let syncs = 0;
  let released = Promise.resolve();
  const hold = (file: number, done: fs.NoParamCallback) => {
    syncs++;
    void released.then(() => fdatasync(file, done));
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

  test.serial("SQLite: a write completes when it is on the disk", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    t.deepEqual(await settingOf(storage, LOG), ["wal", "wal"]);
    const organization = await createOrganization(storage, "Durable");
    const { promise, resolve } = Promise.withResolvers<void>();
    released = promise;
    const before = syncs;
    let completed = 0;
    const writes = atOnce(10, async (index) => {
      await storage.first.links.create(organization.id, OPERATOR, linkFields({ slug: `slug-${index}` }));
      completed++;
    });
    while (!(await storage.second.links.resolve("slug-9"))) await new Promise((next) => setImmediate(next));
    t.is(completed, 0);
    t.is(syncs, before + 1);
    resolve();
    await writes;
    t.is(completed, 10);
    t.is(syncs, before + 1);
  });

  test.serial("SQLite: the file can be a symbolic link", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    const file = storage.url.replace(/^sqlite:/, "");
    fs.symlinkSync(file, `${file}.link`);
    t.teardown(() => fs.rmSync(`${file}.link`));
    const linked = openStorage(`sqlite:${file}.link`, storage.encryptionKey);
    t.teardown(linked.close);
    await createOrganization({ ...storage, first: linked }, "Linked");
    t.truthy(await storage.second.links.resolve("linked-first"));
  });

  test.serial("SQLite: the commit of a transaction waits for the disk", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    const [, inTransaction] = await settingOf(storage, "pragma synchronous");
    t.is(inTransaction, 2); // FULL
  });

  test.serial("SQLite: only a transaction that need not be durable doesn't wait for the disk", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    const ask = async (trx: Knex) => (await trx.raw("pragma synchronous"))[0].synchronous;
    const { transaction } = storage.database;
    t.is(await transaction(ask, { isDurable: false }), 1); // NORMAL
    t.is(await transaction(ask), 2); // FULL
  });

  test.serial("SQLite: writes with ?synchronous=normal do not wait for the disk", async (t) => {
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
    "SQLite: after a failed sync, a later group whose sync succeeded is rejected, too",
    async (t) => {
      const storage = await createTestStorage();
      t.teardown(storage.close);
      t.teardown(() => syncWith(hold));
      const organization = await createOrganization(storage, "Overtaken");
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

  test.serial("SQLite: after a failed sync, all writes are rejected", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    const organization = await createOrganization(storage, "Failing");
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
