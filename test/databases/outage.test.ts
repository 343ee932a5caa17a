import { setTimeout as sleep } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { openStorage } from "../../adapters/index.ts";
import type { Attempt } from "../../resources/idempotency/run-once.ts";
import { apiAt, isProblem, type Reply, read } from "../harness/clients/api.ts";
import { postMcp } from "../harness/clients/mcp.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { atOnce, createTestStorage, linkFields, settledAtOnce } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { Program } from "../harness/program.ts";
import { bearer, OPERATOR, postForm, startTestService } from "../harness/service.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

const storage = await createTestStorage();
const { database, url, encryptionKey } = storage;
const network = engine === "sqlite" ? undefined : await connectThroughProxy();
test.after.always(async () => {
  await network?.close();
  await storage.close();
});

if (network) testOutages(network);
else test("SQLite: while another process locks the file, reads continue and writes wait", waitForLock);

async function waitForLock(t: ExecutionContext) {
  const { first } = storage;
  const id = await storage.createOrganization();
  const holder = new Program(process.execPath, [
    "-e",
    `const db = new (require("better-sqlite3"))(${JSON.stringify(url.slice("sqlite:".length))});
     db.exec("begin immediate");
     console.log("held");
     process.stdin.on("end", () => db.exec("commit")).resume();`,
  ]);
  await holder.says(/held/);
  let areWritten = false;
  const writes = Promise.all([
    storage.createLink(id, { slug: "waits" }),
    first.organizations.setPlan(id, "premium", OPERATOR),
    first.oidcAdapter("Session").upsert("a session", { uid: "a uid", accountId: "usr_a" }, 60),
  ]).finally(() => (areWritten = true));
  // If a write blocked the event loop, the lock would not be released before the write fails.
  for (let reads = 0; reads < 20; reads++) {
    t.is((await first.organizations.find(id))?.plan, "growth");
    await sleep(10);
  }
  t.false(areWritten, "the writes did not wait");
  holder.write("");
  await writes;
  t.is((await first.organizations.find(id))?.plan, "premium");
  t.truthy(await first.links.resolve("waits"));
  t.is((await holder.ended).code, 0);
}

async function connectThroughProxy() {
  const proxy = await startTcpProxy(url);
  const patient = openStorage(proxy.through(url), encryptionKey, { timeoutMs: 10_000 });
  const impatient = openStorage(proxy.through(url), encryptionKey, { timeoutMs: 2000 });
  const { organization, client } = await patient.organizations.create("Unlucky", "growth", OPERATOR);
  const { id } = organization;
  const link = await storage.createLink(id);
  // Other links are redirected from memory.
  const limited = await storage.createLink(id, { maxClicks: 1000 });
  async function close() {
    await Promise.all([patient.close(), impatient.close()]);
    await proxy.close();
  }
  return { close, proxy, patient, impatient, id, link, limited, clientId: client?.clientId as string };
}

// As many connections as a process has.
const CONNECTIONS = 10;
const UNAVAILABLE = { name: "StorageUnavailable" };
let count = 0;

function testOutages(context: Awaited<ReturnType<typeof connectThroughProxy>>) {
  const { proxy, patient, impatient, id, link, limited, clientId } = context;
  test.afterEach.always(() => proxy.restore());

  const list = (by = impatient) => by.links.list(id, {}, 10);
  const find = (by = impatient) => by.clients.find(clientId);
  const create = (by = impatient) => by.links.create(id, OPERATOR, linkFields({ slug: `outage-${++count}` }));
  const resolve = (by = impatient) => by.links.resolve(limited.slug);
  const OPERATIONS = [list, find, create, resolve];
  const fillPool = (by = impatient) => atOnce(3 * CONNECTIONS, () => list(by));
  const assertAvailable = async (t: ExecutionContext, by = impatient) => {
    for (const operation of OPERATIONS) t.truthy(await operation(by));
  };

  test.serial("the first reads after all idle connections were lost succeed", async (t) => {
    const exp = Math.floor(Date.now() / 1000) + 600;
    const token = { kind: "ClientCredentials", clientId, generation: 0, aud: "https://example.com", exp };
    await patient.oidcAdapter("ClientCredentials").upsert("outage-token", token, 600);
    const reads: (() => Promise<unknown>)[] = [
      () => patient.findActiveToken("outage-token"),
      () => resolve(patient),
      () => patient.links.find(id, link.id),
      () => list(patient),
      async () => patient.oidcAdapter("Client").find(clientId),
      () => patient.organizations.find(id),
      () => patient.clients.findByOrganization(id),
    ];
    for (const each of reads) {
      await fillPool(patient);
      proxy.drop();
      t.truthy(await each(), String(each));
      proxy.drop();
      t.true((await atOnce(8, each)).every(Boolean));
    }
  });

  test.serial("writes after lost connections succeed or fail as unavailable, and then succeed", async (t) => {
    for (let round = 0; round < 5; round++) {
      await fillPool(patient);
      proxy.drop();
      for (const result of await settledAtOnce(3, () => create(patient)))
        if (result.status === "rejected") t.like(result.reason, UNAVAILABLE);
      await assertAvailable(t, patient);
    }
  });

  const PRINCIPAL = { organizationId: "org_a", clientId: "lgc_a" };
  const begin = (key: string, by = impatient) => by.idempotency.begin(PRINCIPAL, key, "a request");
  const available = () => until(() => list().catch(() => undefined));
  for (const how of ["refuse", "freeze"] as const)
    test.serial(`${how}: a request that failed in an outage can be repeated after it`, async (t) => {
      await available();
      const keys = Array.from({ length: 3 }, () => `key-${++count}`);
      const attempts: Attempt[] = [];
      for (const key of keys) {
        const begun = await begin(key);
        if ("attempt" in begun) attempts.push(begun.attempt);
      }
      t.is(attempts.length, keys.length);
      await proxy.cut(how);
      for (const { release } of attempts) release().catch(() => {});
      const unstored = `key-${++count}`;
      await t.throwsAsync(begin(unstored), UNAVAILABLE);
      await proxy.restore();
      await available();
      const [other, ...same] = keys as [string, ...string[]];
      for (const key of [unstored, ...same]) t.true("attempt" in (await begin(key)));
      t.truthy(await until(async () => "attempt" in (await begin(other, storage.first)) || undefined));
    });

  test.serial("what is pending when the database becomes unavailable fails while it is away", async (t) => {
    await whileLinksAreLocked(async () => {
      const pending = Promise.allSettled([list, create, resolve].map((operation) => operation(patient)));
      await until(async () => (await findWaiting()).length >= 3 || undefined);
      await proxy.cut();
      for (const result of await pending) t.like(result, { status: "rejected", reason: UNAVAILABLE });
    });
    await proxy.restore();
    await assertAvailable(t, patient);
  });

  const STALLS = {
    "a freeze of all connections": "freeze",
    "a freeze of connections that are being opened": "silence",
  } as const;
  for (const [what, how] of Object.entries(STALLS))
    test.serial(`what is sent during ${what} fails, and what follows uses new connections`, async (t) => {
      await fillPool();
      await proxy.cut(how);
      await Promise.all(OPERATIONS.map((operation) => t.throwsAsync(operation(), UNAVAILABLE)));
      // The frozen connections are never closed, nor is the freeze ever over for them.
      proxy.reopen();
      // A background attempt to connect may still wait for its time limit.
      await available();
      await assertAvailable(t);
      // Of connections that are lost while all are idle, the first one that is used is enough.
      await fillPool();
      await proxy.cut("freeze");
      proxy.reopen();
      await t.throwsAsync(list(), UNAVAILABLE);
      for (let reads = 0; reads < CONNECTIONS; reads++) t.truthy(await list());
    });

  test.serial("a statement that waits for a locked table fails, and ends on the server", async (t) => {
    await whileLinksAreLocked(async () => {
      await t.throwsAsync(list(), UNAVAILABLE);
      await until(async () => (await findWaiting()).length === 0 || undefined);
      t.truthy(await find(), "other tables are available");
    });
    await assertAvailable(t);
  });

  test.serial("when many wait for a locked table, others are refused before them", async (t) => {
    await whileLinksAreLocked(async () => {
      let settled = 0;
      const waiting = settledAtOnce(3 * CONNECTIONS, () => list().finally(() => settled++));
      let refused: unknown;
      const asked: Promise<unknown>[] = [];
      await until(async () => {
        asked.push(find().catch((error) => (refused ??= error)));
        return refused;
      });
      t.like(refused, UNAVAILABLE);
      t.is(settled, 0);
      await Promise.all(asked);
      for (const result of await waiting) t.is(result.status, "rejected");
    });
    await assertAvailable(t);
  });

  test.serial("every interface responds with 503 during an outage, and recovers", async (t) => {
    const { service, app, token } = await startService(t, {});
    const [api, visitor] = [apiAt(service.url, token), apiAt(service.url)];
    const credentials = { client_id: app.clientId, client_secret: app.clientSecret };
    const fields = { grant_type: "client_credentials", ...credentials };
    // Clients that accept text/html also get JSON (RFC 6749 §5.2).
    const requestToken = async () =>
      read(await postForm(`${service.url}/oauth/token`, fields, { accept: "text/html, */*; q=.2" }));
    const ping = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const followed = await api.createLink();
    t.is((await visitor.get(`/${followed.slug}`)).status, 302);
    for (const how of ["refuse", "silence"] as const) {
      const { id: linkId, slug } = await api.createLink();
      await proxy.cut(how);
      const [refusedToken, page, ready, ...problems] = await Promise.all([
        requestToken(),
        visitor.get(`/oauth/authorize?client_id=${app.clientId}&response_type=code`, { accept: "text/html" }),
        visitor.get("/readyz"),
        api.get("/v1/links"),
        api.send("POST", "/v1/links", { json: { url: "https://example.com/" } }),
        api.get(`/v1/links/${linkId}`),
        visitor.get(`/${slug}`, { accept: "application/json" }),
        postMcp(`${service.url}/mcp`, ping, bearer(token)),
      ]);
      for (const problem of problems)
        isProblem(t, problem as Reply<unknown>, { status: 503, code: "temporarily_unavailable" });
      t.like(refusedToken.body, { error: "temporarily_unavailable" });
      t.regex(page.headers.get("content-type") ?? "", /^text\/html/);
      for (const { status, headers, text } of [refusedToken, page, ready, ...problems]) {
        t.is(status, 503, text);
        t.regex(headers.get("retry-after") ?? "", /^\d+$/);
      }
      t.is((await visitor.get("/healthz")).status, 200);
      t.is((await visitor.get(`/${followed.slug}`)).status, 302, "it was followed before");
      const metrics = async () => (await sendRaw(service.url, "/metrics")).text;
      t.regex(await metrics(), /^linkgate_degraded{state="database"} 1$/m);
      // Which hosts are domains is in the database.
      const atHost = (path: string) =>
        sendRaw(service.url, path, { headers: ["host", "go.outage.example", "accept", "application/json"] });
      const { status, headers, text } = await atHost(`/${slug}`);
      t.deepEqual([status, JSON.parse(text).code], [503, "temporarily_unavailable"]);
      t.regex(headers["retry-after"] ?? "", /^\d+$/);
      t.is((await atHost("/healthz")).status, 200, "a process lives without it");
      await proxy.restore();
      t.is((await requestToken()).status, 200);
      t.is((await visitor.get("/readyz")).status, 200);
      t.is((await visitor.get(`/${slug}`)).status, 302);
      await api.createLink();
      t.truthy(
        await until(
          async () => /^linkgate_degraded{state="database"} 0$/m.test(await metrics()) || undefined,
        ),
      );
    }
  });

  test.serial("a frozen database doesn't delay /readyz and /metrics until statements fail", async (t) => {
    const { service, token } = await startService(t, { DATABASE_TIMEOUT: "60" });
    t.is((await sendRaw(service.url, "/readyz")).status, 200);
    await proxy.cut("freeze");
    let isPending = true;
    const request = apiAt(service.url, token)
      .get("/v1/links")
      .finally(() => {
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

  async function startService(t: ExecutionContext, settings: Record<string, string>) {
    const service = await startTestService({
      DATABASE_URL: proxy.through(url),
      ENCRYPTION_KEY: encryptionKey.toString("base64url"),
      DATABASE_TIMEOUT: "3",
      ...settings,
    });
    t.teardown(async () => {
      await proxy.restore();
      await service.close();
    });
    const app = await service.createOrganization();
    return { service, app, token: await service.token(app) };
  }
}

async function whileLinksAreLocked(work: () => Promise<void>): Promise<void> {
  const { knex, close } = openDatabase(url, { timeoutMs: 120_000 });
  const holder = await knex.client.acquireConnection();
  const run = (sql: string) => knex.raw(sql).connection(holder);
  if (engine === "postgres") await run("begin");
  await run(engine === "postgres" ? "lock table links in access exclusive mode" : "lock tables links write");
  try {
    await work();
  } finally {
    await run(engine === "postgres" ? "commit" : "unlock tables");
    knex.client.releaseConnection(holder);
    await close();
  }
}

async function findWaiting(): Promise<unknown[]> {
  return engine === "postgres"
    ? database
        .knex("pg_stat_activity")
        .whereRaw("datname = current_database() and wait_event_type = 'Lock'")
        .pluck("pid")
    : database
        .knex("information_schema.processlist")
        .whereRaw("db = database() and state like 'Waiting%'")
        .pluck("id");
}
