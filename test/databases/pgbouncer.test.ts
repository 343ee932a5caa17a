import test from "ava";
import { isCanceled } from "../../adapters/database/errors.ts";
import { openDatabase } from "../../adapters/database/index.ts";
import { openStorage } from "../../adapters/index.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { hasPgBouncer, startPgBouncer } from "../harness/database/pgbouncer.ts";
import { atOnce, createTestStorage, linkFields, settledAtOnce } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { skip } from "../harness/skip.ts";

export const databases = "all";

const TITLE = "two processes migrate a database and share it, on PostgreSQL through PgBouncer";

if (engine === "postgres" && !hasPgBouncer) skip(TITLE, "pgbouncer is not installed");
else
  test(TITLE, async (t) => {
    const storage = await createTestStorage({ migrated: false });
    t.teardown(storage.close);
    let { url } = storage;
    if (engine === "postgres") {
      const pooler = await startPgBouncer(url);
      t.teardown(pooler.stop);
      url = pooler.url;
    }
    const processes = [1, 2].map(() => openStorage(url, storage.encryptionKey));
    t.teardown(() => Promise.all(processes.map((one) => one.close())));
    const storageOf = (index: number) => processes[index % 2] as (typeof processes)[0];
    const first = storageOf(0);

    const applied = (await Promise.all(processes.map((one) => one.migrate()))).flat();
    t.true(applied.length > 0);
    t.is(new Set(applied).size, applied.length, "no migration ran twice");

    const { organization, client } = await first.organizations.create("Pooled", "growth", OPERATOR);
    if (!client) return t.fail();
    // Several statements that each process sends for the first time, concurrently.
    const unknown = await atOnce(20, (index) =>
      Promise.all([
        storageOf(index).clients.find("unknown"),
        storageOf(index).links.resolve("unknown"),
        storageOf(index).findActiveToken("unknown"),
        storageOf(index).oidcAdapter("AccessToken").destroy("unknown"),
      ]),
    );
    t.is(unknown.flat().filter((one) => one !== undefined).length, 0);
    for (let round = 0; round < 5; round++) {
      const slugOf = (index: number) => `pooled-${round}-${index}`;
      await atOnce(40, (index) =>
        storageOf(index).links.create(organization.id, OPERATOR, linkFields({ slug: slugOf(index) })),
      );
      await atOnce(40, async (index) =>
        t.is((await storageOf(index + 1).links.resolve(slugOf(index)))?.slug, slugOf(index)),
      );
      const clients = await atOnce(40, (index) => storageOf(index).clients.find(client.clientId));
      t.true(clients.every((one) => one?.id === client.clientId));
    }
    t.is((await first.links.list(organization.id, {}, 100)).length, 100);

    const codes = processes.map((one) => one.oidcAdapter("AuthorizationCode"));
    const exp = Math.floor(Date.now() / 1000) + 60;
    await codes[0]?.upsert("pooled-code", { clientId: client.clientId, exp }, 60);
    const uses = await settledAtOnce(20, async (index) => codes[index % 2]?.consume("pooled-code"));
    t.is(uses.filter(({ status }) => status === "fulfilled").length, 1);
  });

const SESSIONS =
  "behind PgBouncer, neither migrations nor searches depend on the time limit of a shared session, on PostgreSQL";

if (engine === "postgres" && hasPgBouncer) {
  test(SESSIONS, async (t) => {
    const storage = await createTestStorage();
    t.teardown(storage.close);
    const pooler = await startPgBouncer(storage.url, { poolSize: 1 });
    t.teardown(pooler.stop);
    const { knex, readAside, close } = openDatabase(pooler.url, { timeoutMs: 1000 });
    t.teardown(close);
    const sleeping = (seconds: number) => knex.select(knex.raw("pg_sleep(?) as slept", [seconds]));
    const unlimited = openDatabase(pooler.url, { timeoutMs: Number.POSITIVE_INFINITY });
    t.teardown(unlimited.close);

    const { rows } = await knex.raw("show statement_timeout");
    t.is(rows[0].statement_timeout, "2s", "the only session has the limit of this process");
    await unlimited.knex.raw("select pg_sleep(3)");
    t.is((await readAside(sleeping(3), 10_000)).length, 1);

    const error = await t.throwsAsync(readAside(sleeping(60), 500));
    t.true(isCanceled(error), error.message);
    const { rows: running } = await storage.database.knex.raw(
      "select query from pg_stat_activity where datname = current_database() and query like '%pg_sleep%' and state = 'active' and pid <> pg_backend_pid()",
    );
    t.deepEqual(running, [], "the server ended the statement");
  });
} else if (engine === "postgres") skip(SESSIONS, "pgbouncer is not installed");
