import test from "ava";
import { type Api, apiAt, type LinkBody } from "../harness/clients/api.ts";
import { inspect } from "../harness/database/test-database.ts";
import { prepareServers } from "../harness/new-server.ts";
import { freePort, type Program } from "../harness/program.ts";
import { populate } from "../harness/service.ts";
import { testOnce } from "../harness/test-once.ts";
import { createWebhook, type Received, startReceiver, until, verify } from "../harness/webhooks.ts";

export const databases = "all";

const { settings, storage, start } = await prepareServers({ LOG_LEVEL: "silent" });
const { knex } = inspect(settings.DATABASE_URL);
const receiver = await startReceiver();
const PORT = String(await freePort());

const url = `http://localhost:${PORT}`;
const { createOrganization, token } = populate(url, storage);
const restart = async () => (await start({ PORT })).server;

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

function expected(links: { id: string; title: string | null; clicks: number }[]): string[] {
  return links
    .flatMap(({ id, title, clicks }) => [
      `link.created ${id}`,
      ...(title === "changed" ? [`link.updated ${id}`] : []),
      ...Array(clicks).fill(`link.clicked ${id}`),
    ])
    .sort();
}

test.serial("after kill -9, exactly the events of committed changes are delivered", async (t) => {
  let server = await restart();
  const app = await createOrganization();
  const accessToken = await token(app);
  const events = ["link.created", "link.updated", "link.clicked"];
  const { secret } = await createWebhook(apiAt(url, accessToken), receiver.url("/crash"), events);
  const acknowledged: string[] = [];
  for (const [round, answers] of [1, 45].entries()) {
    acknowledged.push(...(await crashDuring(server, apiAt(url, accessToken), round, answers)));
    server = await restart();
  }
  const links = await knex("links").where({ organization_id: app.id }).select("id", "title", "clicks");
  const ids = new Set(links.map(({ id }) => id));
  for (const id of acknowledged) t.true(ids.has(id), "acknowledged links exist");
  for (const { clicks } of links) t.true(clicks <= 1, "each was followed once");
  const all = expected(links);
  await until(
    async () => receivedEvents(receiver.received("/crash"), secret).length >= all.length || undefined,
  );
  t.deepEqual(receivedEvents(receiver.received("/crash"), secret), all);
  t.log(`${links.length} links, ${all.length} events, ${receiver.received("/crash").length} deliveries`);
  await server.stop();
});

testOnce("a stop waits for attempts, and aborts those that hang, which the next start repeats", async (t) => {
  const server = await restart();
  const app = await createOrganization();
  const api = apiAt(url, await token(app));
  const held = Promise.withResolvers<void>();
  receiver.respond("/stopped", (response) => void held.promise.then(() => response.writeHead(204).end()));
  receiver.respond("/hangs", () => {});
  const stopped = await createWebhook(api, receiver.url("/stopped"));
  const hanging = await createWebhook(api, receiver.url("/hangs"));
  await api.createLink();
  await receiver.waitFor("/stopped", 1);
  const [first] = await receiver.waitFor("/hangs", 1);
  server.kill("SIGTERM");
  // From now on, the server accepts no requests.
  await until(async () => ((await fetch(`${url}/healthz`).catch(() => undefined)) ? undefined : true));
  held.resolve();
  t.is((await server.ended).code, 0);
  const deliveryOf = async (webhook: { id: string }) =>
    (await storage.webhooks.deliveries(app.id, webhook.id, 1))[0];
  t.like(await deliveryOf(stopped), { status: "succeeded", attempts: [{ status: 204 }] });
  t.like(await deliveryOf(hanging), { status: "pending", attempts: [] });

  receiver.respond("/hangs", (response) => response.writeHead(204).end());
  const other = await restart();
  const [, second] = await receiver.waitFor("/hangs", 2);
  t.is(second?.headers["webhook-id"], first?.headers["webhook-id"] as string);
  await other.stop();
  t.is(receiver.received("/stopped").length, 1, "none of them is repeated");
  t.like(await deliveryOf(hanging), { status: "succeeded", attempts: [{ status: 204 }] });
});
