import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { openStorage } from "../../adapters/index.ts";
import { type Api, apiAt, type LinkBody } from "../harness/clients/api.ts";
import { createTestDatabase } from "../harness/database/test-database.ts";
import { freePort } from "../harness/port.ts";
import { addressOf, type Program, startServer, stopPrograms } from "../harness/program.ts";
import { populate } from "../harness/service.ts";
import { until } from "../harness/webhooks.ts";

const database = await createTestDatabase();
const key = randomBytes(32);
const storage = openStorage(database.url, key);
const { knex, close } = openDatabase(database.url);
test.after.always(async () => {
  stopPrograms();
  await close();
  await storage.close();
  await database.drop();
});

async function start(port: number): Promise<Program> {
  const server = startServer({
    settings: {
      DATABASE_URL: database.url,
      ENCRYPTION_KEY: key.toString("base64url"),
      PORT: String(port),
      RATE_LIMIT: "off",
      LOG_LEVEL: "silent",
    },
  });
  await addressOf(server);
  return server;
}

/** Creates and updates links until the server is killed or the load ends, and adds the IDs of created ones. */
async function load(api: Api, created: string[], ended: AbortSignal): Promise<void> {
  const json = { url: "https://example.com/" };
  while (!ended.aborted) {
    const { status, body } = await api.send<LinkBody>("POST", "/v1/links", { json });
    if (status !== 201) throw new Error(`answered ${status}`);
    created.push(body.id);
    if (created.length % 5 === 0)
      await api.send("PATCH", `/v1/links/${body.id}`, { json: { title: "changed" } });
  }
}

test("after kill -9 of one of two servers that append to a log, it has every entry once and is continued", async (t) => {
  const ports = [await freePort(), await freePort()] as const;
  const urls = ports.map((port) => `http://localhost:${port}`) as [string, string];
  let killed = await start(ports[0]);
  const survivor = await start(ports[1]);
  const app = await populate(urls[0], storage).createOrganization();
  const head = async () =>
    (await knex("audit_chains").where({ organization_id: app.id }).first("seq"))?.seq ?? 0;
  const entries = () => knex("events").where({ organization_id: app.id, audited: true });

  const created: string[] = [];
  for (let round = 0; round < 3; round++) {
    const apis = await Promise.all(
      urls.map(async (url) => apiAt(url, await populate(url, storage).token(app))),
    );
    const ended = new AbortController();
    const clients = (api: Api | undefined) =>
      Promise.allSettled(Array.from({ length: 6 }, () => load(api as Api, created, ended.signal)));
    const first = clients(apis[0]);
    const second = clients(apis[1]);
    const seen = await head();
    await until(async () => (await head()) > seen + 20 || undefined);
    killed.kill("SIGKILL");
    await killed.ended;
    t.true((await first).every(({ status }) => status === "rejected"));
    const before = created.length;
    await until(async () => created.length > before + 20 || undefined);
    ended.abort();
    t.true((await second).every(({ status }) => status === "fulfilled"));
    if (round < 2) killed = await start(ports[0]);
  }

  // The other server chains what the killed one left, at the latest when its lease has expired.
  await until(async () => ((await entries().whereNull("seq")).length === 0 ? true : undefined));
  const all = await entries().orderBy("seq");
  t.deepEqual(
    all.map(({ seq }) => seq),
    all.map((_, index) => index + 1),
  );
  const createdEntries = new Set(all.filter(({ type }) => type === "link.created").map((row) => row.subject));
  for (const id of created) t.true(createdEntries.has(id), "an acknowledged link has its entry");
  t.like((await storage.verifyAuditLogs(app.id))[0], { ok: true, first_seq: 1, last_seq: all.length });
  t.log(`${all.length} entries`);
  await survivor.stop();
});
