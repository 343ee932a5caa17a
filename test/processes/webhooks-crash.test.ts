import { randomBytes } from "node:crypto";
import test from "ava";
import { openStorage } from "../../adapters/index.ts";
import type { Link } from "../../resources/links/types.ts";
import { type Api, apiAt, type LinkBody } from "../harness/clients/api.ts";
import { createTestDatabase } from "../harness/database/test-database.ts";
import { freePort } from "../harness/port.ts";
import { addressOf, type Program, startServer, stopPrograms } from "../harness/program.ts";
import { type Received, startReceiver, verify } from "../harness/receiver.ts";
import { populate } from "../harness/service.ts";
import { createWebhook, until } from "../harness/webhooks.ts";

const database = await createTestDatabase();
const key = randomBytes(32);
const storage = openStorage(database.url, key);
const receiver = await startReceiver();
const port = await freePort();
const url = `http://localhost:${port}`;
const { createOrganization, token } = populate(url, storage);
test.after.always(async () => {
  stopPrograms();
  await receiver.close();
  await storage.close();
  await database.drop();
});

async function start(): Promise<Program> {
  const server = startServer({
    settings: {
      DATABASE_URL: database.url,
      ENCRYPTION_KEY: key.toString("base64url"),
      PORT: String(port),
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
    const page = (await storage.links.list(organizationId, {}, 100, links.at(-1)?.id)) as Link[];
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
