import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../adapters/database/index.ts";
import { openStorage } from "../../adapters/index.ts";
import type { Link } from "../../resources/links/types.ts";
import { type Api, apiAt, type LinkBody } from "../harness/clients/api.ts";
import { createTestDatabase } from "../harness/database/test-database.ts";
import { freePort } from "../harness/port.ts";
import { addressOf, type Program, startServer, stopPrograms } from "../harness/program.ts";
import { type Received, startReceiver, verify } from "../harness/receiver.ts";
import { populate } from "../harness/service.ts";
import { createWebhook, until } from "../harness/webhooks.ts";

export const databases = "all";

const database = await createTestDatabase();
const key = randomBytes(32);
const storage = openStorage(database.url, key);
const receiver = await startReceiver();
const port = await freePort();

test.after.always(async () => {
  stopPrograms();
  await receiver.close();
  await close();
  await storage.close();
  await database.drop();
});

const url = `http://localhost:${port}`;
const { createOrganization, token } = populate(url, storage);

async function start(at = port): Promise<Program> {
  const server = startServer({
    settings: {
      DATABASE_URL: database.url,
      ENCRYPTION_KEY: key.toString("base64url"),
      PORT: String(at),
      RATE_LIMIT: "off",
      LOG_LEVEL: "silent",
      WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
    },
  });
  await addressOf(server);
  return server;
}

async function crash(server: Program): Promise<void> {
  server.kill("SIGKILL");
  await server.ended;
}

/** Sends concurrent changes, some of which are rejected, and kills the server after a number of responses. */
async function crashDuring(server: Program, api: Api, round: number, answers: number): Promise<string[]> {
  const acknowledged: string[] = [];
  const { promise: enough, resolve } = Promise.withResolvers<void>();
  async function change(index: number) {
    const slug = index % 5 === 0 ? `shared-${round}` : `crash-${round}-${index}`;
    const json = { url: "https://example.com/", slug };
    const { status, body } = await api.send<LinkBody>("POST", "/v1/links", { json });
    if (status === 201) acknowledged.push(body.id);
    if (acknowledged.length === answers) resolve();
    if (status !== 201) return;
    if (index % 2) await api.send("PATCH", `/v1/links/${body.id}`, { json: { title: "changed" } });
    else await apiAt(url).get(`/${slug}`);
  }
  const changes = Array.from({ length: 60 }, (_, index) => change(index).catch(() => {}));
  await Promise.race([enough, Promise.all(changes)]);
  await crash(server);
  await Promise.all(changes);
  return acknowledged;
}

async function linksOf(organizationId: string): Promise<Link[]> {
  const links: Link[] = [];
  for (;;) {
    const last = links.at(-1);
    const from = last && { id: last.id, value: 0 };
    const page = (await storage.links.list(organizationId, {}, 100, { from })) as Link[];
    if (page.length === 0) return links;
    links.push(...page);
  }
}

/** Returns each received event once, as `<type> <link>`. */
function receivedEvents(requests: Received[], secret: string): string[] {
  const events = new Map<string, string>();
  for (const request of requests) {
    const { type, data } = verify(request, secret);
    const id = request.headers["webhook-id"] as string;
    const message = `${type} ${data.link_id ?? data.id}`;
    if (events.has(id) && events.get(id) !== message) throw new Error(`${id} was received for two events`);
    events.set(id, message);
  }
  return [...events.values()].sort();
}

/** Returns the events that follow from the links in the database. */
function expected(links: Link[]): string[] {
  return links
    .flatMap(({ id, title, clicks }) => [
      `link.created ${id}`,
      ...(title === "changed" ? [`link.updated ${id}`] : []),
      ...Array(clicks).fill(`link.clicked ${id}`),
    ])
    .sort();
}

test.serial("after kill -9, exactly the events of committed changes are delivered", async (t) => {
  let server = await start();
  const app = await createOrganization();
  const accessToken = await token(app);
  const events = ["link.created", "link.updated", "link.clicked"];
  const { secret } = await createWebhook(apiAt(url, accessToken), receiver.url("/crash"), events);
  const acknowledged: string[] = [];
  for (const [round, answers] of [1, 8, 20, 35, 45].entries()) {
    acknowledged.push(...(await crashDuring(server, apiAt(url, accessToken), round, answers)));
    server = await start();
  }
  const links = await linksOf(app.id);
  const ids = new Set(links.map(({ id }) => id));
  for (const id of acknowledged) t.true(ids.has(id), "acknowledged links exist");
  const all = expected(links);
  await until(
    async () => receivedEvents(receiver.received("/crash"), secret).length >= all.length || undefined,
  );
  t.deepEqual(receivedEvents(receiver.received("/crash"), secret), all);
  t.log(`${links.length} links, ${all.length} events, ${receiver.received("/crash").length} deliveries`);
  await server.stop();
});

test.serial(
  "a delivery in flight in a killed process is sent again by another one with the same ID",
  async (t) => {
    const server = await start();
    const app = await createOrganization();
    const api = apiAt(url, await token(app));
    receiver.respond("/in-flight", () => {});
    const { secret } = await createWebhook(api, receiver.url("/in-flight"));
    const { id } = await api.createLink();
    const [first] = await receiver.waitFor("/in-flight", 1);
    await crash(server);
    receiver.respond("/in-flight", (response) => response.writeHead(204).end());
    const other = await start();
    const [, second] = await receiver.waitFor("/in-flight", 2);
    if (!first || !second) return t.fail();
    t.is(second.headers["webhook-id"], first.headers["webhook-id"]);
    t.is(second.text, first.text);
    t.is(verify(second, secret).data.id, id);
    await other.stop();
    t.is(receiver.received("/in-flight").length, 2);
  },
);

test.serial(
  "a webhook whose process is killed right after its creation is verified by another one",
  async (t) => {
    const server = await start();
    const app = await createOrganization();
    const api = apiAt(url, await token(app));
    receiver.exposeVerification("/unverified");
    receiver.respond("/unverified", () => {});
    const { id } = await createWebhook(api, receiver.url("/unverified"));
    const link = await api.createLink();
    await crash(server);
    t.false((await storage.webhooks.find(app.id, id))?.verified);
    const before = receiver.received("/unverified");
    receiver.respond("/unverified", (response) => response.writeHead(204).end());
    const other = await start();
    const requests = (await receiver.waitFor("/unverified", before.length + 2)).slice(before.length);
    t.deepEqual(
      requests.map(({ body }) => body.type),
      ["webhook.test", "link.created"],
    );
    t.is(requests[1]?.body.data.id, link.id);
    for (const { headers } of before) t.is(headers["webhook-id"], requests[0]?.headers["webhook-id"]);
    t.true((await storage.webhooks.find(app.id, id))?.verified);
    await other.stop();
  },
);

test.serial("a graceful stop waits for the attempts in flight and none of them is repeated", async (t) => {
  const server = await start();
  const app = await createOrganization();
  const api = apiAt(url, await token(app));
  const held = Promise.withResolvers<void>();
  receiver.respond("/stopped", (response) => void held.promise.then(() => response.writeHead(204).end()));
  const webhook = await createWebhook(api, receiver.url("/stopped"));
  await api.createLink();
  await receiver.waitFor("/stopped", 1);
  server.kill("SIGTERM");
  // From now on, the server accepts no requests.
  await until(async () => ((await fetch(`${url}/healthz`).catch(() => undefined)) ? undefined : true));
  held.resolve();
  t.is((await server.ended).code, 0);
  const [delivery] = await storage.webhooks.deliveries(app.id, webhook.id, 1);
  t.like(delivery, { status: "succeeded", attempts: [{ status: 204 }] });
});

test.serial("a stop aborts the attempt of a hanging endpoint, and the next start repeats it", async (t) => {
  const server = await start();
  const app = await createOrganization();
  const api = apiAt(url, await token(app));
  receiver.respond("/hangs", () => {});
  const webhook = await createWebhook(api, receiver.url("/hangs"));
  await api.createLink();
  const [first] = await receiver.waitFor("/hangs", 1);
  t.is((await server.stop()).code, 0);
  const [cut] = await storage.webhooks.deliveries(app.id, webhook.id, 1);
  t.like(cut, { status: "pending", attempts: [] });

  receiver.respond("/hangs", (response) => response.writeHead(204).end());
  const other = await start();
  const [, second] = await receiver.waitFor("/hangs", 2);
  t.is(second?.headers["webhook-id"], first?.headers["webhook-id"] as string);
  await other.stop();
  const [delivery] = await storage.webhooks.deliveries(app.id, webhook.id, 1);
  t.is(delivery?.status, "succeeded");
  t.deepEqual(
    delivery?.attempts.map(({ status }) => status),
    [204],
  );
});

const { knex, close } = openDatabase(database.url);

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
