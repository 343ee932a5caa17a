import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { openStorage, type Storage } from "../../adapters/index.ts";
import { RETRY_AFTER_S } from "../../resources/http/problem.ts";
import type { Link } from "../../resources/links/types.ts";
import { apiAt } from "../harness/clients/api.ts";
import { hasMariadb, startMariadb } from "../harness/database/mariadb.ts";
import { atOnce, linkFields } from "../harness/database/storage.ts";
import { createTestDatabase, engine, serverOf } from "../harness/database/test-database.ts";
import { addressOf, freePort, runCommand, startServer } from "../harness/program.ts";
import { OPERATOR, postForm, startTestService } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "servers";

// A primary that becomes a replica, as in a failover.
type Server = { url: string; demote(): Promise<void>; promote(): Promise<void>; remove(): Promise<void> };

const TITLE = "while the database is read-only, writes fail as unavailable";
let count = 0;
const server =
  engine === "postgres"
    ? await onPostgres()
    : engine === "mysql" && hasMariadb
      ? await onMariadb()
      : undefined;
const KEY = randomBytes(32);
if (server) {
  const storage = openStorage(server.url, KEY);
  await storage.migrate();
  testReadOnly(server, storage);
  testStarts(server);
} else
  skip(TITLE, engine === "mysql" ? "the MariaDB server is not installed" : "a failover: SQLite has none");

/** Sessions are read-only from their start until their end, as if they reached the old primary until they reconnect. */
async function onPostgres({ empty = false } = {}): Promise<Server> {
  const { url, drop } = await createTestDatabase({ empty });
  const admin = openDatabase(serverOf("postgres") as string);
  const name = new URL(url).pathname.slice(1);
  // Sessions that are opening have the former setting, and pg_stat_activity doesn't show them yet.
  const opening = async (): Promise<number[]> =>
    await admin
      .knex("pg_locks")
      .whereRaw("classid = 'pg_database'::regclass and mode = 'RowExclusiveLock'")
      .where("objid", admin.knex("pg_database").select("oid").where("datname", name))
      .pluck("pid");
  async function set(value: string) {
    await admin.knex.raw("alter database ?? set default_transaction_read_only = ??", [name, value]);
    const before = new Set(await opening());
    await until(async () => (await opening()).every((pid) => !before.has(pid)) || undefined);
  }
  return {
    url,
    async demote() {
      await set("on");
      await admin.knex.raw("select pg_terminate_backend(pid) from pg_stat_activity where datname = ?", [
        name,
      ]);
    },
    promote: () => set("off"),
    async remove() {
      await admin.close();
      await drop();
    },
  };
}

/** `read_only` concerns the whole server, except users who may ignore it. */
async function onMariadb(): Promise<Server> {
  const server = await startMariadb();
  const admin = openDatabase(server.url);
  for (const statement of [
    "create database linkgate",
    "create user linkgate@'%' identified by 'password'",
    "grant all on linkgate.* to linkgate@'%'",
  ])
    await admin.knex.raw(statement);
  const url = new URL(server.url);
  Object.assign(url, { username: "linkgate", password: "password", pathname: "/linkgate" });
  return {
    url: url.href,
    demote: async () => void (await admin.knex.raw("set global read_only = 1")),
    promote: async () => void (await admin.knex.raw("set global read_only = 0")),
    async remove() {
      await admin.close();
      await server.remove();
    },
  };
}

function testReadOnly(server: Server, storage: Storage) {
  test.after.always(async () => {
    await server.promote();
    await storage.close();
    await server.remove();
  });
  test.beforeEach(() => server.promote());

  const setUp = async () => {
    const { organization } = await storage.organizations.create("Demoted", "growth", OPERATOR);
    const fields = linkFields({ slug: `demoted-${++count}` });
    const link = (await storage.links.create(organization.id, OPERATOR, fields)) as Link;
    return { id: organization.id, link };
  };
  type Context = Awaited<ReturnType<typeof setUp>>;
  const writes: Record<string, (context: Context) => Promise<unknown>> = {
    "a new link": ({ id }) => storage.links.create(id, OPERATOR, linkFields({ slug: `demoted-${++count}` })),
    "a session": async () =>
      storage
        .oidcAdapter("Session")
        .upsert(`session-${++count}`, { uid: `${count}`, accountId: "usr_a" }, 60),
  };
  /** Reads many at a time, so each connection of the pool is used. */
  const readAll = ({ id, link }: Context) =>
    atOnce(20, async () => [await storage.links.list(id, {}, 10), await storage.links.resolve(link.slug)]);

  for (const [name, write] of Object.entries(writes))
    test.serial(`while the database is read-only, ${name} fails and reads succeed`, async (t) => {
      const context = await setUp();
      await readAll(context);
      await server.demote();
      await t.throwsAsync(write(context), { name: "StorageUnavailable" });
      // Opens connections that are read-only, too.
      t.true((await readAll(context)).flat().every(Boolean));
      await server.promote();
      await t.notThrowsAsync(write(context), "the first write after the database is writable again");
    });
}

function testStarts(server: Server) {
  const settings = { ENCRYPTION_KEY: KEY.toString("base64url"), RATE_LIMIT: "off" };
  const readiness = async (url: string) => {
    const response = await fetch(`${url}/readyz`);
    const { status: state } = (await response.json()) as { status: string };
    return { status: response.status, state, retryAfter: response.headers.get("retry-after") };
  };

  test.serial("a process that starts read-only serves reads, and is ready when it can write", async (t) => {
    // Tokens are for the address of the server.
    const own = { DATABASE_URL: server.url, ...settings, PORT: String(await freePort()) };
    const first = await startTestService(own);
    const app = await first.createOrganization();
    const token = await first.token(app);
    const credentials = { client_id: app.clientId, client_secret: app.clientSecret };
    await apiAt(first.url, token).createLink({ slug: "read" });
    await first.close();

    await server.demote();
    const service = await startTestService(own);
    t.teardown(service.close);
    const { url } = service;
    t.deepEqual(await readiness(url), { status: 503, state: "read_only", retryAfter: String(RETRY_AFTER_S) });
    t.is((await fetch(`${url}/read`, { redirect: "manual" })).status, 302);
    t.like(await (await postForm(`${url}/oauth/introspect`, { token, ...credentials })).json(), {
      active: true,
    });
    t.is((await apiAt(url, token).get("/v1/links")).status, 200);
    const fields = { grant_type: "client_credentials", ...credentials };
    t.is((await postForm(`${url}/oauth/token`, fields)).status, 503);

    await server.promote();
    t.is((await readiness(url)).status, 200);
    t.truthy(await service.token(app));
  });

  test.serial(
    "a process waits for a database that is read-only and not migrated, and migrate says why",
    async (t) => {
      const empty = engine === "postgres" ? await onPostgres({ empty: true }) : await onMariadb();
      t.teardown(empty.remove);
      await empty.demote();
      const own = { DATABASE_URL: empty.url, ...settings, PORT: "0" };
      const { code, stderr } = await runCommand(["migrate"], { settings: own });
      t.is(code, 1);
      t.regex(stderr, /^DATABASE_URL: .*the server is read-only[^\n]*\n$/);

      const server = startServer({ settings: { ...own, LOG_LEVEL: "info" } });
      t.teardown(() => server.stop());
      await server.says(/read-only and not migrated, will retry/);
      await empty.promote();
      await server.says(/stopped waiting for a writable database/);
      t.is((await readiness(await addressOf(server))).status, 200);
    },
  );
}
