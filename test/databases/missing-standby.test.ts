import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { apiAt } from "../harness/clients/api.ts";
import { postAsClient } from "../harness/clients/oauth.ts";
import { hasPostgres, startPostgres } from "../harness/database/postgres.ts";
import { startLoad } from "../harness/load.ts";
import { IS_THOROUGH } from "../harness/rounds.ts";
import { startTestService } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";
import { until } from "../harness/webhooks.ts";

export const stage = "long";

const TITLE =
  "while a synchronous standby is missing, writes get 503, reads and redirects succeed, and connections are bounded";
const CONNECTIONS = 10;
const LANES = 60;
const TIMEOUT_MS = 8000;
// Long enough for all connections to be cut and replaced.
const OUTAGE_MS = IS_THOROUGH ? 60_000 : 20_000;

if (hasPostgres)
  test(TITLE, async (t) => {
    const server = await startPostgres();
    t.teardown(server.remove);
    const admin = openDatabase(server.url);
    t.teardown(admin.close);
    const run = async (sql: string) => (await admin.knex.raw(sql)).rows;
    await run("create database linkgate");
    // It sees requests to cancel, too, which are no sessions of the server.
    const proxy = await startTcpProxy(server.url);
    t.teardown(proxy.close);
    const service = await startTestService({
      DATABASE_URL: proxy.through(server.url.replace(/postgres$/, "linkgate")),
      ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
      DATABASE_TIMEOUT: String(TIMEOUT_MS / 1000),
    });
    t.teardown(service.close);
    const app = await service.createOrganization();
    const token = await service.token(app);
    const api = apiAt(service.url, token);
    const create = (slug: string) =>
      api.send("POST", "/v1/links", { json: { url: "https://example.com/", slug } });
    t.is((await create("kept")).status, 201);

    await run("alter system set synchronous_standby_names = 'ANY 1 (missing)'");
    await run("select pg_reload_conf()");
    await until(
      async () => (await run("show synchronous_standby_names"))[0].synchronous_standby_names || undefined,
    );
    const writes = startLoad(
      {
        link: (count) => create(`waits-${count}`),
        token: () => postAsClient(service, "token", app, { grant_type: "client_credentials" }),
      },
      LANES / 2,
    );
    const reads = startLoad(
      {
        redirect: () => api.get("/kept"),
        list: () => api.get("/v1/links"),
        introspect: () => postAsClient(service, "introspect", app, { token }),
        ready: () => api.get("/readyz"),
      },
      1,
    );
    const end = Date.now() + OUTAGE_MS;
    let most = 0;
    while (Date.now() < end) {
      const [{ count }] = await run("select count(*)::int from pg_stat_activity where datname = 'linkgate'");
      most = Math.max(most, count);
      await sleep(100);
    }
    const refused = structuredClone(writes.outcomes);
    const answered = structuredClone(reads.outcomes);
    await run("alter system set synchronous_standby_names = ''");
    await run("select pg_reload_conf()");
    await until(async () => ((await create(`again-${Date.now()}`)).status === 201 ? true : undefined));
    await sleep(500);
    await Promise.all([writes.stop(), reads.stop()]);

    t.true(most <= CONNECTIONS, `${most} sessions`);
    t.true(proxy.mostOpen() <= CONNECTIONS, `${proxy.mostOpen()} connections`);
    for (const [kind, outcomes] of Object.entries(refused)) {
      t.true(outcomes.length >= LANES / 2, kind);
      // A connection may not know yet that commits wait.
      const first = outcomes.findIndex(({ status }) => status === 503);
      t.true(first >= 0 && first <= CONNECTIONS, `${kind}: ${first} succeeded`);
      for (const { status, retryAfter } of outcomes.slice(first)) {
        t.is(status, 503, kind);
        t.regex(retryAfter ?? "", /^\d+$/);
      }
    }
    const SUCCESS = { redirect: 302, list: 200, introspect: 200, ready: 200 };
    for (const [kind, outcomes] of Object.entries(answered)) {
      const slowest = Math.max(...outcomes.map(({ ms }) => ms));
      t.true(slowest < TIMEOUT_MS / 2, `${kind} waited for a write: ${slowest} ms`);
      const failed = outcomes.filter(({ status }) => status !== SUCCESS[kind as keyof typeof SUCCESS]);
      t.is(failed.length, 0, `${kind}: ${failed.length} of ${outcomes.length}`);
    }
    t.is(writes.outcomes.link.at(-1)?.status, 201);
    t.is(writes.outcomes.token.at(-1)?.status, 200);
  });
else skip(TITLE, "PostgreSQL is not installed");
