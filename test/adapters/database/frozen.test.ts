import { randomBytes } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import { type Database, openDatabase } from "../../../adapters/database/index.ts";
import { apiAt, isProblem, type Reply, read } from "../../harness/clients/api.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { postForm, startTestService } from "../../harness/service.ts";
import { skip } from "../../harness/skip.ts";
import { startTcpProxy } from "../../harness/tcp-proxy.ts";
import { until } from "../../harness/webhooks.ts";

export const databases = "all";

// As many connections as a process has.
const CONNECTIONS = 10;

if (engine !== "sqlite") testServer(await serve());
else skip("a frozen database", "SQLite has no connection that could freeze");

async function serve() {
  const database = await createTestDatabase();
  const proxy = await startTcpProxy(database.url);
  const service = await startTestService({
    DATABASE_URL: proxy.through(database.url),
    DATABASE_TIMEOUT: "3",
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
  });
  const direct = openDatabase(database.url, { timeoutMs: 120_000 });
  const app = await service.createOrganization();
  const api = apiAt(service.url, await service.token(app));
  const link = await api.createLink();
  test.after.always(async () => {
    await proxy.restore();
    await service.close();
    await proxy.close();
    await direct.close();
    await database.drop();
  });
  return { proxy, service, app, api, link, direct };
}

function testServer({ proxy, service, app, api, link, direct }: Awaited<ReturnType<typeof serve>>) {
  const visitor = apiAt(service.url);
  const requestToken = async () =>
    read(
      await postForm(`${service.url}/oauth/token`, {
        grant_type: "client_credentials",
        client_id: app.clientId,
        client_secret: app.clientSecret,
      }),
    );
  const list = () => api.get("/v1/links");

  function isUnavailable(t: ExecutionContext, { status, headers, text }: Reply<unknown>) {
    t.is(status, 503, text);
    t.regex(headers.get("retry-after") ?? "", /^\d+$/);
  }

  async function assertAvailable(t: ExecutionContext) {
    t.is((await list()).status, 200);
    t.is((await requestToken()).status, 200);
    t.is((await visitor.get("/readyz")).status, 200);
    await api.createLink();
    t.is((await visitor.get(`/${link.slug}`)).status, 302);
  }

  /** Opens all connections of the pool. */
  const fillPool = () => Promise.all(Array.from({ length: 3 * CONNECTIONS }, list));

  test.serial("requests during a freeze fail with 503, and the next ones use new connections", async (t) => {
    await fillPool();
    await proxy.cut("freeze");
    let pending = 0;
    const requests = [
      list(),
      requestToken(),
      api.send("POST", "/v1/links", { json: { url: "https://example.com/" } }),
      visitor.get(`/${link.slug}`, { accept: "application/json" }),
      visitor.get("/readyz"),
    ];
    for (const request of requests) {
      pending++;
      void request.finally(() => pending--);
    }
    t.is((await visitor.get("/healthz")).status, 200);
    t.is(pending, requests.length, "/healthz waits for nothing");
    for (const answer of await Promise.all(requests)) isUnavailable(t, answer as Reply<unknown>);
    // The frozen connections are never closed, nor is the freeze ever over for them.
    proxy.reopen();
    await assertAvailable(t);
  });

  test.serial("idle connections that were lost without notice delay requests once", async (t) => {
    await fillPool();
    await proxy.cut("freeze");
    proxy.reopen();
    isUnavailable(t, await list());
    for (let requests = 0; requests < CONNECTIONS; requests++) t.is((await list()).status, 200);
  });

  test.serial("a connection that freezes while it is opened is given up", async (t) => {
    await proxy.restore();
    await proxy.cut("silence");
    for (const answer of await Promise.all([list(), requestToken()])) isUnavailable(t, answer);
    proxy.reopen();
    // Background work may have begun to open others later, which are given up later.
    const isBack = async () => (await list()).status === 200 && (await requestToken()).status === 200;
    await until(async () => (await isBack()) || undefined);
    await assertAvailable(t);
  });

  test.serial(
    "a statement that waits for a locked table fails with 503 and ends on the server",
    async (t) => {
      const unlock = await lockLinks(direct);
      try {
        isUnavailable(t, await list());
        const waiting = await findWaiting(direct);
        await until(
          async () => (await findWaiting(direct)).every((id) => !waiting.includes(id)) || undefined,
        );
        t.is((await requestToken()).status, 200, "other tables are available");
      } finally {
        await unlock();
      }
      await assertAvailable(t);
    },
  );

  test.serial("when many requests wait for a locked table, others are refused before them", async (t) => {
    const unlock = await lockLinks(direct);
    try {
      let settled = 0;
      const waiting = Array.from({ length: 3 * CONNECTIONS }, () => list().finally(() => settled++));
      let refused: Reply<unknown> | undefined;
      const ask = async () => {
        const answer = await requestToken();
        if (answer.status !== 200) refused ??= answer;
      };
      const asked: Promise<void>[] = [];
      const first = await until(async () => {
        asked.push(ask());
        return refused;
      });
      isUnavailable(t, first);
      t.is(settled, 0);
      await Promise.all(asked);
      for (const answer of await Promise.all(waiting))
        isProblem(t, answer, { status: 503, code: "temporarily_unavailable" });
    } finally {
      await unlock();
    }
    await assertAvailable(t);
  });
}

/** Locks the table of links. Resolves to a function that unlocks it. */
async function lockLinks({ knex }: Database): Promise<() => Promise<void>> {
  const holder = await knex.client.acquireConnection();
  const run = (sql: string) => knex.raw(sql).connection(holder);
  if (engine === "postgres") await run("begin");
  await run(engine === "postgres" ? "lock table links in access exclusive mode" : "lock tables links write");
  return async () => {
    await run(engine === "postgres" ? "commit" : "unlock tables").finally(() =>
      knex.client.releaseConnection(holder),
    );
  };
}

/** Finds the connections whose statements wait for a lock. */
async function findWaiting({ knex }: Database): Promise<unknown[]> {
  return engine === "postgres"
    ? knex("pg_stat_activity")
        .whereRaw("datname = current_database() and wait_event_type = 'Lock'")
        .pluck("pid")
    : knex("information_schema.processlist")
        .whereRaw("db = database() and state like 'Waiting%'")
        .pluck("id");
}

const TITLE = "while the database is frozen, /readyz and /metrics answer before statements fail";
if (engine === "sqlite") skip(TITLE, "SQLite has no connection that could freeze");
else
  test(TITLE, async (t) => {
    const database = await createTestDatabase();
    const proxy = await startTcpProxy(database.url);
    const service = await startTestService({
      DATABASE_URL: proxy.through(database.url),
      DATABASE_TIMEOUT: "60",
      ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
    });
    t.teardown(async () => {
      await service.close();
      await proxy.close();
      await database.drop();
    });
    const api = apiAt(service.url, await service.token(await service.createOrganization()));
    t.is((await sendRaw(service.url, "/readyz")).status, 200);

    await proxy.cut("freeze");
    let isPending = true;
    const request = api.get("/v1/links").finally(() => {
      isPending = false;
    });
    for (let times = 0; times < 2; times++) {
      const { status, text } = await sendRaw(service.url, "/readyz?verbose");
      t.is(status, 503);
      t.like(JSON.parse(text), { status: "no database", pid: process.pid });
    }
    const { status, text } = await sendRaw(service.url, "/metrics");
    t.is(status, 200);
    t.regex(text, /^linkgate_database_up 0$/m);
    t.notRegex(text, /^linkgate_purge_lag_seconds \d/m);
    t.true(isPending);

    await proxy.restore();
    await proxy.cut("refuse");
    t.is((await request).status, 503);
    await proxy.restore();
    t.is((await sendRaw(service.url, "/readyz")).status, 200);
    t.regex((await sendRaw(service.url, "/metrics")).text, /^linkgate_database_up 1$/m);
  });
