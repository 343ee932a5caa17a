import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem, type Reply, read } from "../../harness/clients/api.ts";
import { postMcp } from "../../harness/clients/mcp.ts";
import { clickAt, linkFields } from "../../harness/database/storage.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { Program } from "../../harness/program.ts";
import { bearer, postForm, startTestService } from "../../harness/service.ts";
import { startTcpProxy } from "../../harness/tcp-proxy.ts";

export const databases = "all";

const database = await createTestDatabase();
const network = engine === "sqlite" ? undefined : await serveThroughProxy();
test.after.always(async () => {
  await network?.close();
  await database.drop();
});

if (network) testOutages(network);
else {
  test("SQLite: while another process locks the file, reads continue and writes wait", waitForLock);
}

async function waitForLock(t: ExecutionContext) {
  const storage = openStorage(database.url, randomBytes(32));
  await storage.migrate();
  const { organization } = await storage.organizations.create("Locked", "growth", OPERATOR);
  const file = database.url.slice("sqlite:".length);
  const holder = new Program(process.execPath, [
    "-e",
    `const db = new (require("better-sqlite3"))(${JSON.stringify(file)});
     db.exec("begin immediate");
     console.log("held");
     process.stdin.on("end", () => db.exec("commit")).resume();`,
  ]);
  await holder.says(/held/);
  let areWritten = false;
  const writes = Promise.all([
    storage.links.create(organization.id, OPERATOR, linkFields({ slug: "waits" })),
    storage.organizations.setPlan(organization.id, "premium", OPERATOR),
    storage.oidcAdapter("Session").upsert("a session", { uid: "a uid", accountId: "usr_a" }, 60),
  ]).finally(() => (areWritten = true));
  // If a write blocked the event loop, the lock would not be released before the write fails.
  for (let reads = 0; reads < 20; reads++) {
    t.is((await storage.organizations.find(organization.id))?.plan, "growth");
    await sleep(10);
  }
  t.false(areWritten, "the writes did not wait");
  holder.write("");
  await writes;
  t.is((await storage.organizations.find(organization.id))?.plan, "premium");
  t.truthy(await storage.links.resolve("waits"));
  await storage.close();
  t.is((await holder.ended).code, 0);
}

async function serveThroughProxy() {
  const proxy = await startTcpProxy(database.url);
  const service = await startTestService({
    DATABASE_URL: proxy.through(database.url),
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
  });
  const app = await service.createOrganization();
  const token = await service.token(app);
  const link = await apiAt(service.url, token).createLink();
  async function close() {
    await proxy.restore();
    await service.close();
    await proxy.close();
  }
  return { proxy, service, app, token, link, close };
}

function testOutages({ proxy, service, app, token, link }: Awaited<ReturnType<typeof serveThroughProxy>>) {
  const api = apiAt(service.url, token);
  const visitor = apiAt(service.url);
  const credentials = {
    grant_type: "client_credentials",
    client_id: app.clientId,
    client_secret: app.clientSecret,
  };
  // Clients that accept text/html also get JSON (RFC 6749 §5.2).
  const requestToken = async () =>
    read(await postForm(`${service.url}/oauth/token`, credentials, { accept: "text/html, */*; q=.2" }));

  /** Asserts that every interface responds with 503 and Retry-After. */
  async function assertUnavailable(t: ExecutionContext) {
    const [token503, page, ready, ...problems] = await Promise.all([
      requestToken(),
      visitor.get(`/oauth/authorize?client_id=${app.clientId}&response_type=code`, { accept: "text/html" }),
      visitor.get("/readyz"),
      api.get("/v1/links"),
      api.send("POST", "/v1/links", { json: { url: "https://example.com/" } }),
      api.get(`/v1/links/${link.id}`),
      visitor.get(`/${link.slug}`, { accept: "application/json" }),
      postMcp(`${service.url}/mcp`, { jsonrpc: "2.0", id: 1, method: "tools/list" }, bearer(token)),
    ]);
    for (const problem of problems)
      isProblem(t, problem as Reply<unknown>, { status: 503, code: "temporarily_unavailable" });
    t.like(token503.body, { error: "temporarily_unavailable" });
    t.regex(page.headers.get("content-type") ?? "", /^text\/html/);
    for (const { status, headers, text } of [token503, page, ready, ...problems]) {
      t.is(status, 503, text);
      t.regex(headers.get("retry-after") ?? "", /^\d+$/);
    }
    t.is((await visitor.get("/healthz")).status, 200);
  }

  async function assertAvailable(t: ExecutionContext) {
    t.is((await api.get("/v1/links")).status, 200);
    t.is((await requestToken()).status, 200);
    t.is((await visitor.get("/readyz")).status, 200);
    await api.createLink();
    t.is((await visitor.get(`/${link.slug}`)).status, 302);
  }

  test.afterEach.always(() => proxy.restore());

  test.serial("the first reads after all idle connections were lost succeed", async (t) => {
    const { storage } = service;
    const reads: (() => Promise<unknown>)[] = [
      () => storage.findActiveToken(token),
      () => storage.links.resolve(link.slug),
      () => storage.links.find(app.id, link.id),
      () => storage.links.list(app.id, {}, 10),
      async () => storage.oidcAdapter("Client").find(app.clientId),
      () => storage.organizations.find(app.id),
      () => storage.clients.findByOrganization(app.id),
    ];
    for (const each of reads) {
      await assertAvailable(t);
      proxy.drop();
      t.truthy(await each());
      proxy.drop();
      t.deepEqual(
        new Set((await Promise.all(Array.from({ length: 8 }, each))).map(Boolean)),
        new Set([true]),
      );
    }
  });

  test.serial("requests after lost connections succeed or fail with 503, and then succeed", async (t) => {
    for (let round = 0; round < 10; round++) {
      await Promise.all(Array.from({ length: 5 }, () => api.get("/v1/links")));
      proxy.drop();
      const answers = await Promise.all([
        requestToken(),
        api.send("POST", "/v1/links", { json: { url: "https://example.com/" } }),
      ]);
      for (const { status, text } of answers) t.true([200, 201, 503].includes(status), text);
      await assertAvailable(t);
    }
  });

  test.serial(
    "every request fails with 503 while the database refuses connections, and succeeds afterwards",
    async (t) => {
      await proxy.cut();
      await assertUnavailable(t);
      await assertUnavailable(t);
      await proxy.restore();
      await assertAvailable(t);
    },
  );

  test.serial(
    "every request fails with 503 while the database does not respond, and succeeds afterwards",
    async (t) => {
      await proxy.cut("silence");
      await assertUnavailable(t);
      await proxy.restore();
      await assertAvailable(t);
    },
  );

  test.serial("clicks during an outage of the database are counted once it is available", async (t) => {
    const clicked = await api.createLink();
    const destination = await service.storage.links.resolve(clicked.slug);
    if (!destination) throw new Error("no link");
    await proxy.cut();
    for (let index = 0; index < 10; index++)
      await service.storage.links.click(destination, clickAt(Date.now()));
    isProblem(t, await api.get("/v1/links"), { status: 503, code: "temporarily_unavailable" });
    await t.throwsAsync(service.storage.links.list(app.id, {}, 10), { name: "StorageUnavailable" });
    await proxy.restore();
    for (;;) {
      const { clicks } = (await api.get(`/v1/links/${clicked.id}`)).body;
      if (clicks > 0) {
        t.is(clicks, 10);
        break;
      }
      await sleep(50); // storing is retried twice a second
    }
  });

  test.serial(
    "requests that are pending when the database becomes unavailable fail with 503 while it is away",
    async (t) => {
      const direct = openDatabase(database.url);
      t.teardown(() => direct.close());
      const holder = await direct.knex.client.acquireConnection();
      const run = (sql: string) => direct.knex.raw(sql).connection(holder);
      if (engine === "postgres") await run("begin");
      await run(
        engine === "postgres" ? "lock table links in access exclusive mode" : "lock tables links write",
      );
      const sent = Promise.withResolvers<void>();
      let waiting = 0;
      const stop = service.onStatement((sql) => {
        if (/(into|from) .?links\b/.test(sql) && ++waiting === 3) sent.resolve();
      });
      try {
        const requests = Promise.all([
          api.send("POST", "/v1/links", { json: { url: "https://example.com/" } }),
          api.get("/v1/links"),
          visitor.get(`/${link.slug}`, { accept: "application/json" }),
        ]);
        await Promise.race([sent.promise, requests]);
        await proxy.cut();
        for (const answer of await requests)
          isProblem(t, answer as Reply<unknown>, { status: 503, code: "temporarily_unavailable" });
      } finally {
        stop();
        await run(engine === "postgres" ? "commit" : "unlock tables");
        direct.knex.client.releaseConnection(holder);
      }
      await proxy.restore();
      await assertAvailable(t);
    },
  );
}
