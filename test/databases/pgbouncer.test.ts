import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { isCanceled } from "../../adapters/database/errors.ts";
import { openDatabase } from "../../adapters/database/index.ts";
import { openStorage } from "../../adapters/index.ts";
import { apiAt } from "../harness/clients/api.ts";
import { postAsClient } from "../harness/clients/oauth.ts";
import { hasPgBouncer, startPgBouncer } from "../harness/database/pgbouncer.ts";
import { hasPostgres, startPostgres } from "../harness/database/postgres.ts";
import { atOnce, createTestStorage, linkFields } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { startLoad } from "../harness/load.ts";
import { OPERATOR, startTestService } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { until } from "../harness/webhooks.ts";

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

const RESTART =
  "behind PgBouncer, requests during a restart of PostgreSQL succeed or get 503, and all succeed soon after it";

if (engine === "postgres" && hasPgBouncer && hasPostgres) {
  test(RESTART, async (t) => {
    const server = await startPostgres();
    t.teardown(server.remove);
    const pooler = await startPgBouncer(server.url);
    t.teardown(pooler.stop);
    const key = randomBytes(32).toString("base64url");
    const service = await startTestService({ DATABASE_URL: pooler.url, ENCRYPTION_KEY: key });
    t.teardown(service.close);
    const app = await service.createOrganization();
    const api = apiAt(service.url, await service.token(app));
    const create = (slug: string) =>
      api.send("POST", "/v1/links", { json: { url: "https://example.com/", slug } });
    t.is((await create("restarted")).status, 201);
    const load = startLoad(
      {
        token: () => postAsClient(service, "token", app, { grant_type: "client_credentials" }),
        link: (count) => create(`restarted-${count}`),
        list: () => api.get("/v1/links"),
        redirect: () => api.get("/restarted"),
      },
      2,
    );
    await sleep(500);
    await server.stop();
    await sleep(2000);
    await server.start();
    const startedAt = Date.now();
    await until(async () => ((await create(`after-${Date.now()}`)).status === 201 ? true : undefined));
    t.true(Date.now() - startedAt < 5000, "PgBouncer connects again after a second");
    await sleep(1500);
    const answered = structuredClone(load.outcomes);
    load.reset();
    await sleep(500);
    await load.stop();

    const EXPECTED = { token: [200, 503], link: [201, 503], list: [200, 503], redirect: [302, 503] };
    for (const [kind, statuses] of Object.entries(EXPECTED) as [keyof typeof EXPECTED, number[]][]) {
      const during = answered[kind];
      t.deepEqual(
        [...new Set(during.map(({ status }) => status))].filter((status) => !statuses.includes(status)),
        [],
        kind,
      );
      for (const { status, retryAfter } of during) if (status === 503) t.regex(retryAfter ?? "", /^\d+$/);
      t.true(load.outcomes[kind].length > 0);
      t.true(
        load.outcomes[kind].every(({ status }) => status === statuses[0]),
        `${kind}, afterwards`,
      );
    }
  });
} else if (engine === "postgres") skip(RESTART, "pgbouncer or PostgreSQL is not installed");
