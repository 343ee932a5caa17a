import { randomBytes, randomUUID } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { apiAt, isProblem, type Reply, read } from "../../harness/clients/api.ts";
import { hasMariadb, startMariadb } from "../../harness/database/mariadb.ts";
import { clickAt } from "../../harness/database/storage.ts";
import { createTestDatabase, engine, serverOf } from "../../harness/database/test-database.ts";
import { postForm, startTestService } from "../../harness/service.ts";
import { skip } from "../../harness/skip.ts";
import { until } from "../../harness/webhooks.ts";

export const databases = "all";

// A primary that becomes a replica, as in a failover.
type Server = { url: string; demote(): Promise<void>; promote(): Promise<void>; remove(): Promise<void> };

const TITLE = "while the database is read-only, writes fail with 503";
if (engine === "postgres") testReadOnly(await serve(await onPostgres()));
else if (engine === "mysql" && hasMariadb) testReadOnly(await serve(await onMariadb()));
else skip(TITLE, engine === "mysql" ? "the MariaDB server is not installed" : "SQLite has no failover");

/** Sessions are read-only from their start until their end, as if they reached the old primary until they reconnect. */
async function onPostgres(): Promise<Server> {
  const { url, drop } = await createTestDatabase();
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

async function serve(server: Server) {
  const service = await startTestService({
    DATABASE_URL: server.url,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
  });
  const app = await service.createOrganization();
  const user = await service.createUser([app.id]);
  const token = await service.token(app);
  const api = apiAt(service.url, token);
  const link = await api.createLink();
  return { server, service, app, user, api, link };
}

function testReadOnly({ server, service, app, user, api, link }: Awaited<ReturnType<typeof serve>>) {
  test.after.always(async () => {
    await server.promote();
    await service.close();
    await server.remove();
  });
  test.afterEach.always(() => server.promote());

  const visitor = apiAt(service.url);
  const { clientId: client_id, clientSecret: client_secret } = app;
  const json = { url: "https://example.com/" };
  const form = async (path: string, fields: Record<string, string>) =>
    read(await postForm(`${service.url}${path}`, fields));
  const writes: Record<string, () => Promise<Reply<unknown>>> = {
    "a new link": () => api.send("POST", "/v1/links", { json }),
    "a new link with an Idempotency-Key": () =>
      api.send("POST", "/v1/links", { json, headers: { "idempotency-key": randomUUID() } }),
    "a changed link": () => api.send("PATCH", `/v1/links/${link.id}`, { json: { title: randomUUID() } }),
    "a token": () => form("/oauth/token", { grant_type: "client_credentials", client_id, client_secret }),
    "a sign-in": () => form("/auth/login", { username: user.username, password: user.password }),
    "a registration": () =>
      form("/auth/register", { username: `new-${randomUUID()}`, password: randomUUID() }),
  };
  /** Requests that only read, many at a time, so each connection of the pool is used. */
  const readAll = (t: ExecutionContext) =>
    Promise.all(
      Array.from({ length: 20 }, async () => {
        t.is((await api.get("/v1/links")).status, 200);
        t.is((await visitor.get(`/${link.slug}`)).status, 302);
      }),
    );

  test.serial(`${TITLE}, and reads succeed`, async (t) => {
    await readAll(t);
    await server.demote();
    for (const [name, write] of Object.entries(writes)) {
      const reply = await write();
      t.is(reply.status, 503, `${name}: ${reply.text}`);
      t.regex(reply.headers.get("retry-after") ?? "", /^\d+$/);
    }
    isProblem(t, (await writes["a new link"]?.()) as Reply<unknown>, {
      status: 503,
      code: "temporarily_unavailable",
    });
    await readAll(t);
    for (const path of ["/readyz", "/healthz"]) t.is((await visitor.get(path)).status, 200);
  });

  for (const [name, write] of Object.entries(writes)) {
    test.serial(`${name} is stored by the first request after the database is writable again`, async (t) => {
      await server.demote();
      t.is((await write()).status, 503);
      // Opens connections that are read-only, too.
      await readAll(t);
      await server.promote();
      const reply = await write();
      t.true([200, 201].includes(reply.status), reply.text);
    });
  }

  test.serial("clicks on a link are counted once the database is writable again", async (t) => {
    const clicked = await api.createLink();
    const destination = await service.storage.links.resolve(clicked.slug);
    if (!destination) throw new Error("no link");
    await server.demote();
    for (let index = 0; index < 10; index++)
      await service.storage.links.click(destination, clickAt(Date.now()));
    t.is((await api.get(`/v1/links/${clicked.id}`)).body.clicks, 0);
    await server.promote();
    const counted = async () => (await api.get(`/v1/links/${clicked.id}`)).body.clicks || undefined;
    t.is(await until(counted), 10);
    t.is((await api.get<{ clicks: number }>(`/v1/links/${clicked.id}/analytics`)).body.clicks, 10);
  });
}
