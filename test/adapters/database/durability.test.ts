import fs from "node:fs";
import test from "ava";
import type { Knex } from "knex";
import { openStorage, type Storage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { createTestStorage, linkFields, type TestStorage } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

/** Queries a setting of the database, outside and inside a transaction. */
async function settingOf({ database }: TestStorage, query: string): Promise<unknown[]> {
  const ask = async (knex: { raw(sql: string): unknown }) => {
    const answer = (await knex.raw(query)) as { rows?: object[] } & object[];
    return Object.values((answer.rows ?? answer.flat())[0] as object)[0];
  };
  return [await ask(database.knex), await database.transaction(ask)];
}

/** Creates an organization with a link. */
async function createOrganization({ first }: { first: Storage }, name: string) {
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
  const LOG = "pragma journal_mode";

  test.serial("SQLite: the file can be a symbolic link", async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    const file = storage.url.replace(/^sqlite:/, "");
    fs.symlinkSync(file, `${file}.link`);
    t.teardown(() => fs.rmSync(`${file}.link`));
    const linked = openStorage(`sqlite:${file}.link`, storage.encryptionKey);
    t.teardown(linked.close);
    await createOrganization({ first: linked }, "Linked");
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

  test.serial("SQLite: the log is used with ?synchronous=normal, without waiting for the disk", async (t) => {
    const storage = await createTestStorage({ options: "?synchronous=normal" });
    t.teardown(storage.close);
    t.deepEqual(await settingOf(storage, LOG), ["wal", "wal"]);
    t.deepEqual(await settingOf(storage, "pragma synchronous"), [1, 1]); // NORMAL
  });

  const AFTER_LOSS: Record<string, (storage: TestStorage, organizationId: string) => Promise<unknown>> = {
    write: ({ first }, id) => first.links.create(id, OPERATOR, linkFields({ slug: "lost" })),
    transaction: ({ database }) => database.transaction((trx) => trx("leases").del()),
    "transaction that need not be durable": ({ database }) =>
      database.transaction((trx) => trx("leases").del(), { isDurable: false }),
  };
  for (const options of ["", "?synchronous=normal"])
    for (const [name, write] of Object.entries(AFTER_LOSS)) {
      test.serial(
        `SQLite: a ${name} is rejected after the log was replaced${options && `, with ${options}`}`,
        async (t) => {
          const storage = await createTestStorage({ options });
          t.teardown(() => storage.close().catch(() => {}));
          const failures: string[] = [];
          for (const { onFailure } of [storage.first, storage.database])
            onFailure(({ message }) => failures.push(message));
          const organization = await createOrganization(storage, "Replaced");
          await storage.database.transaction((trx) => trx("leases").del());
          const log = `${storage.url.slice("sqlite:".length).split("?", 1)[0]}-wal`;
          fs.copyFileSync(log, `${log}.copy`);
          fs.renameSync(`${log}.copy`, log);
          await t.throwsAsync(write(storage, organization.id), {
            message: /not available|the database failed/,
          });
          t.deepEqual(failures, [`the database failed: another program deleted or replaced ${log}`]);
          await t.throwsAsync(write(storage, organization.id), {
            message: /not available|the database failed/,
          });
        },
      );
    }

  test.serial("SQLite: a step that fails to stop doesn't keep the database open", async (t) => {
    const service = await startTestService();
    const { close } = service.storage;
    let isClosed = false;
    Object.assign(service.storage, {
      close: async () => {
        isClosed = true;
        await close();
      },
    });
    const failing = new Error("it can't stop");
    Object.assign(service.storage.auditChain, {
      release() {
        throw failing;
      },
    });
    await t.throwsAsync(service.close(), { is: failing });
    t.true(isClosed);
  });
}
