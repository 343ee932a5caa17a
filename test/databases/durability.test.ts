import fs from "node:fs";
import test, { type ExecutionContext } from "ava";
import type { Knex } from "knex";
import { type Engine, rowsOf } from "../../adapters/database/engine.ts";
import { openStorage } from "../../adapters/index.ts";
import { createTestStorage, type TestStorage } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { temporaryFolder } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";

export const databases = "all";

async function settingOf(knex: Knex, query: string): Promise<unknown> {
  const [row] = rowsOf<object>(await knex.raw(query));
  return Object.values(row as object)[0];
}

async function open(t: ExecutionContext, options = ""): Promise<TestStorage> {
  const storage = await createTestStorage({ options });
  t.teardown(() => storage.close().catch(() => {})); // one test makes the database unusable
  return storage;
}

// What says whether a commit waits for the disk, and its values: of a transaction, and of one that need not be durable.
const SYNC = {
  sqlite: ["pragma synchronous", 2, 1], // FULL and NORMAL
  postgres: ["show synchronous_commit", "on", "off"],
  mysql: ["select @@innodb_flush_log_at_trx_commit", 1, 1],
}[engine as Engine] as [query: string, durable: unknown, other: unknown];

test("the commit of a transaction waits for the disk, unless it need not be durable", async (t) => {
  const { database } = await open(t);
  const [query, durable, other] = SYNC;
  const ask = (knex: Knex) => settingOf(knex, query);
  t.is(await database.transaction(ask), durable);
  t.is(await database.transaction(ask, { isDurable: false }), other);
  t.is(await database.transaction(ask), durable);
  if (engine !== "sqlite") t.is(await ask(database.knex), durable);
  else t.is(await (await open(t, "?synchronous=normal")).database.transaction(ask), other, "not OFF");
});

if (engine === "mysql")
  test("MariaDB: too long values are rejected", async (t) => {
    const { createLink, createOrganization } = await open(t);
    const id = await createOrganization();
    await t.throwsAsync(createLink(id, { slug: "x".repeat(256) }), { code: "ER_DATA_TOO_LONG" });
  });

if (engine === "sqlite") {
  test.serial("SQLite: the file can be a symbolic link", async (t) => {
    const { url, encryptionKey, createOrganization, createLink, second } = await open(t);
    const link = `${temporaryFolder("link")}/test.sqlite`;
    fs.symlinkSync(url.replace(/^sqlite:/, ""), link);
    const linked = openStorage(`sqlite:${link}`, encryptionKey);
    t.teardown(() => linked.close());
    await createLink(await createOrganization(), { slug: "linked" }, linked);
    t.truthy(await second.links.resolve("linked"));
  });

  const REFUSED = { message: /not available|the database failed/ };
  const AFTER_LOSS: Record<string, (storage: TestStorage, organizationId: string) => Promise<unknown>> = {
    write: ({ createLink }, id) => createLink(id),
    transaction: ({ database }) => database.transaction((trx) => trx("leases").del()),
    "transaction that need not be durable": ({ database }) =>
      database.transaction((trx) => trx("leases").del(), { isDurable: false }),
  };
  for (const options of ["", "?synchronous=normal"])
    for (const [name, write] of Object.entries(AFTER_LOSS))
      test.serial(`SQLite: a ${name} is rejected after the log was replaced ${options}`.trim(), async (t) => {
        const storage = await open(t, options);
        const failures: string[] = [];
        for (const { onFailure } of [storage.first, storage.database])
          onFailure(({ message }) => failures.push(message));
        const organizationId = await storage.createOrganization();
        await storage.database.transaction((trx) => trx("leases").del());
        const log = `${storage.url.slice("sqlite:".length).split("?", 1)[0]}-wal`;
        fs.copyFileSync(log, `${log}.copy`);
        fs.renameSync(`${log}.copy`, log);
        await t.throwsAsync(write(storage, organizationId), REFUSED);
        t.deepEqual(failures, [`the database failed: another program deleted or replaced ${log}`]);
        await t.throwsAsync(write(storage, organizationId), REFUSED);
      });

  test.serial("SQLite: a step that fails to stop doesn't keep the database open", async (t) => {
    const service = await startTestService();
    const { close } = service.storage;
    const failing = new Error("it can't stop");
    let isClosed = false;
    service.storage.auditChain.release = () => {
      throw failing;
    };
    service.storage.close = async () => {
      isClosed = true;
      await close();
    };
    await t.throwsAsync(service.close(), { is: failing });
    t.true(isClosed);
  });
}
