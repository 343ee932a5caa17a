import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { childrenOf } from "../harness/child-processes.ts";
import { apiAt, type LinkBody } from "../harness/clients/api.ts";
import { isAcceptedByApi, postAsClient } from "../harness/clients/oauth.ts";
import { hasPostgres, type PostgresServer, startPostgres } from "../harness/database/postgres.ts";
import { runCommand, stopPrograms } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { until } from "../harness/webhooks.ts";

const QUICK = { fsync: "off" };

if (hasPostgres) testReplica(await start());
else skip("redirects read a replica, on PostgreSQL", "the PostgreSQL server is not installed");

async function start() {
  const primary = await startPostgres(QUICK);
  const replica = await primary.startReplica();
  const settings = {
    DATABASE_URL: primary.url,
    DATABASE_REPLICA_URL: replica.url,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
  };
  const service = await startTestService(settings);
  const direct = openDatabase(replica.url);
  const app = await service.createOrganization();
  test.after.always(async () => {
    await direct.close();
    await service.close();
    await replica.remove();
    await primary.remove();
    stopPrograms();
  });
  return { primary, replica, settings, service, direct, app };
}

function testReplica({
  primary,
  replica,
  settings,
  service,
  direct,
  app,
}: Awaited<ReturnType<typeof start>>) {
  const visitor = apiAt(service.url);
  const follow = async ({ slug }: { slug: string }) => {
    const { status, headers } = await visitor.get(`/${slug}`);
    return status === 302 ? headers.get("location") : status;
  };

  async function metric(name: string): Promise<number> {
    const { text } = await visitor.get("/metrics");
    const line = text.split("\n").find((one) => one.startsWith(`${name} `));
    return Number(line?.slice(name.length));
  }

  const lookups = (database: string) => metric(`linkgate_link_lookups_total{database="${database}"}`);
  const isInUse = () => metric("linkgate_replica_in_use");
  const turns = (value: 0 | 1) => until(async () => (await isInUse()) === value || undefined);

  /** Resolves when the replica has a link. */
  const reaches = ({ id }: { id: string }) => until(() => direct.knex("links").where({ id }).first("id"));

  /** Stops replaying: the replica lags from here on. */
  async function holdBack() {
    await direct.knex.raw("select pg_wal_replay_pause()");
    await until(async () => {
      const { rows } = await direct.knex.raw("select pg_get_wal_replay_pause_state() as state");
      return rows[0].state === "paused" || undefined;
    });
  }

  const catchUp = () => direct.knex.raw("select pg_wal_replay_resume()");

  async function signal(server: PostgresServer, name: NodeJS.Signals) {
    for (const pid of [server.pid, ...(await childrenOf(server.pid))]) process.kill(pid, name);
  }

  const diagnose = async (changed: Record<string, string> = {}) => {
    const { stdout } = await runCommand(["doctor", "--json"], { settings: { ...settings, ...changed } });
    const { checks } = JSON.parse(stdout) as { checks: { name: string; ok: boolean; detail: string }[] };
    return checks.find(({ name }) => name === "replica");
  };

  test.serial("redirects read the replica, and count clicks on the primary", async (t) => {
    const api = apiAt(service.url, await service.token(app));
    const link = await api.createLink({ url: "https://example.com/replicated" });
    await reaches(link);
    await turns(1);
    const before = { replica: await lookups("replica"), primary: await lookups("primary") };
    t.is(await follow(link), "https://example.com/replicated");
    t.is(await lookups("replica"), before.replica + 1);
    t.is(await lookups("primary"), before.primary);
    t.is((await api.get<LinkBody>(`/v1/links/${link.id}`)).body.clicks, 1);
    t.true((await diagnose())?.ok);
  });

  test.serial(
    "while the replica lags, new links redirect and revoked tokens are refused immediately",
    async (t) => {
      const token = await service.token(app);
      const api = apiAt(service.url, token);
      const [changed, limited] = [await api.createLink(), await api.createLink({ max_clicks: 1 })];
      const suspended = await service.createOrganization();
      const victim = await apiAt(service.url, await service.token(suspended)).createLink();
      await reaches(victim);
      await turns(1);
      await holdBack();

      const created = await api.createLink({ url: "https://example.com/new" });
      t.is(await follow(created), "https://example.com/new");
      t.deepEqual([await follow(limited), await follow(limited)], ["https://example.com/", 410]);
      await api.send("PATCH", `/v1/links/${changed.id}`, { json: { url: "https://example.com/changed" } });
      await service.storage.suspensions.suspend(suspended.id, "abuse", OPERATOR);
      t.true(await isAcceptedByApi(service, token));
      t.is((await postAsClient(service, "revoke", app, { token })).status, 200);
      t.false(await isAcceptedByApi(service, token));
      t.deepEqual((await postAsClient(service, "introspect", app, { token })).body, { active: false });

      // Beyond the limit, the primary is read.
      await turns(0);
      t.is(await follow(changed), "https://example.com/changed");
      t.is(await follow(victim), 410);
      const row = await direct.knex("links").where({ id: changed.id }).first("url");
      t.is(row?.url, "https://example.com/", "the replica still lags");
      t.regex((await diagnose())?.detail ?? "", /more than 5 s behind/);
      t.is((await visitor.get("/readyz")).status, 200);

      await catchUp();
      await turns(1);
      t.is(await follow(changed), "https://example.com/changed");
      t.is(await follow(victim), 410);
    },
  );

  test.serial("redirects work while the replica is down, and read it again when it is back", async (t) => {
    const link = await apiAt(service.url, await service.token(app)).createLink();
    await reaches(link);
    await turns(1);
    await replica.crash();
    const answers = await Promise.all(Array.from({ length: 20 }, () => follow(link)));
    t.deepEqual([...new Set(answers)], ["https://example.com/"]);
    t.is(await isInUse(), 0);
    const { ok, detail } = (await diagnose()) ?? {};
    t.false(ok);
    t.regex(detail ?? "", /^DATABASE_REPLICA_URL: cannot connect to postgres:.*Redirects read the primary$/);
    await replica.start();
    await turns(1);
    const before = await lookups("replica");
    t.is(await follow(link), "https://example.com/");
    t.is(await lookups("replica"), before + 1);
  });

  test.serial("redirects work while the replica is frozen", async (t) => {
    const link = await apiAt(service.url, await service.token(app)).createLink();
    await reaches(link);
    await turns(1);
    await signal(replica, "SIGSTOP");
    const answers = await Promise.all(Array.from({ length: 20 }, () => follow(link)));
    t.deepEqual([...new Set(answers)], ["https://example.com/"]);
    t.is(await isInUse(), 0);
    await signal(replica, "SIGCONT");
    await turns(1);
    t.is(await follow(link), "https://example.com/");
  });

  test.serial("a server that isn't a replica of the primary is not read", async (t) => {
    const other = await startPostgres(QUICK);
    const otherReplica = await other.startReplica();
    t.teardown(async () => {
      await otherReplica.remove();
      await other.remove();
    });
    t.regex(
      (await diagnose({ DATABASE_REPLICA_URL: primary.url }))?.detail ?? "",
      /DATABASE_REPLICA_URL: the server is not a replica/,
    );
    t.regex(
      (await diagnose({ DATABASE_REPLICA_URL: otherReplica.url }))?.detail ?? "",
      /DATABASE_REPLICA_URL: the server is a replica of another primary/,
    );
  });

  test.serial("without its primary, the replica is read no longer than the limit of its lag", async (t) => {
    const link = await apiAt(service.url, await service.token(app)).createLink();
    await reaches(link);
    await turns(1);
    await signal(primary, "SIGSTOP");
    await turns(0);
    await signal(primary, "SIGCONT");
    await turns(1);
    t.is(await follow(link), "https://example.com/");
  });
}
