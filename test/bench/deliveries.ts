import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import pLimit from "p-limit";
import { engineOf } from "../../adapters/database/engine.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { LINK_DEFAULTS } from "../../resources/links/types.ts";
import type { ServerProcess } from "./process.ts";
import { createWebhook, type Receiver, startReceiver, verifyWebhooks } from "./receiver.ts";
import { type Seeded, seed, withStorage } from "./seed.ts";
import { type Row, row } from "./table.ts";
import { eachDatabase, type Workspace, withDatabase } from "./workspace.ts";

// The limit of attempts per host should not be what limits the rate.
const HOSTS = Array.from({ length: 16 }, (_, index) => `127.0.0.${index + 1}`);
// Longer than the spreading and the start of a server take.
const SPREAD_AFTER_MS = 8000;

type Workload = {
  organizations: number;
  /** Per organization. */
  webhooks: number;
  /** Per organization. */
  events: number;
  /** How many become due per second; by default, all are due. */
  perSecond?: number;
  /** The receiver answers the first attempt of every n-th delivery with 503. */
  failEvery?: number;
};

const MANY = { organizations: 200, webhooks: 2, events: 50 };
const WORKLOADS: Record<string, Workload> = {
  "many organizations": MANY,
  "one in ten retried": { ...MANY, failEvery: 10 },
  "one organization": { organizations: 1, webhooks: 10, events: 1000 },
  // With a few new deliveries at a time, the service can't do much of the work for all of them together.
  "500 due per second": { organizations: 200, webhooks: 2, events: 15, perSecond: 500 },
};
// Per second and core.
const MIN_PER_CORE = 1000;
const POLL_MS = 50;
const DEADLINE_MS = 180_000;

/** Deliveries of a backlog to a receiver on loopback, on a new database for each. */
export const deliveries = eachDatabase(
  async (workspace, url, engine) => {
    const rows: Row[] = [];
    for (const [name, workload] of Object.entries(WORKLOADS)) {
      const own = rows.length === 0 ? url : await workspace.database(engineOf(url), name);
      rows.push(await deliver(workspace, own, `${name}, ${engine}`, workload));
    }
    return rows;
  },
  ["sqlite", "postgres"],
);

async function deliver(workspace: Workspace, url: string, name: string, workload: Workload): Promise<Row> {
  const { organizations, webhooks, events, failEvery } = workload;
  const receiver = await startReceiver(workspace, HOSTS, failEvery);
  const seeded = await seedDeliveries(url, workload, receiver.origins);
  const count = organizations * webhooks * events;
  const attempts = count + (failEvery ? Math.floor(count / failEvery) : 0);
  const { server } = await workspace.restart(seeded, { env: { WEBHOOK_ALLOW_HOSTS: HOSTS.join(",") } });
  const start = await sampleAt(0.1 * attempts, server, receiver);
  const end = await sampleAt(0.9 * attempts, server, receiver);
  await sampleAt(attempts, server, receiver);
  await server.stop();
  await expectDelivered(url, { deliveries: count, attempts }, receiver);
  const cpuMs = (end.cpuMs - start.cpuMs) / (end.requests - start.requests);
  return row(`deliveries, ${name}, per second of CPU`, 1000 / cpuMs, {
    cpu: cpuMs * 1000,
    atLeast: MIN_PER_CORE,
    note: `${Math.round(((end.requests - start.requests) * 1000) / (end.at - start.at))} per second, ${workspace.syncNote()}`,
  });
}

/** Waits until so many deliveries are received, and reads the clocks. */
async function sampleAt(requests: number, server: ServerProcess, receiver: Receiver) {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const sample = { ...receiver.received(), cpuMs: server.cpuMs(), at: performance.now() };
    if (sample.requests >= requests) return sample;
    if (sample.at > deadline) throw new Error(`${sample.requests} of ${requests} deliveries were received`);
    await sleep(POLL_MS);
  }
}

type Expected = { deliveries: number; attempts: number };

/** @throws Error unless every delivery was received, and all attempts are stored */
async function expectDelivered(url: string, expected: Expected, receiver: Receiver): Promise<void> {
  const [row] = await withDatabase(url, (knex) =>
    knex("deliveries").where({ status: "succeeded" }).count({ count: "*" }).sum({ attempts: "attempts" }),
  );
  const stored = { deliveries: Number(row?.count), attempts: Number(row?.attempts) };
  const { events, requests } = receiver.received();
  const arrived = { deliveries: events, attempts: requests };
  if (!isDeepStrictEqual(stored, expected) || !isDeepStrictEqual(arrived, expected))
    throw new Error(`expected ${JSON.stringify({ expected, stored, arrived })}`);
}

async function seedDeliveries(url: string, workload: Workload, origins: string[]): Promise<Seeded> {
  const { organizations, webhooks, events, perSecond } = workload;
  const seeded = await seed(url);
  await withStorage(url, async (storage) => {
    const owners = await atMost(8, organizations, async (index) => {
      const { organization } = await storage.organizations.create(`Deliveries ${index}`, "premium", OPERATOR);
      const target = `${origins[index % origins.length]}/${index}`;
      for (let number = 0; number < webhooks; number++)
        await createWebhook(storage, organization.id, `${target}/${number}`);
      return organization.id;
    });
    await verifyWebhooks(url);
    await atMost(16, organizations * events, (event) =>
      storage.links.create(owners[event % organizations] as string, OPERATOR, {
        slug: `backlog-${event}`,
        url: "https://example.com/some/page?of=the&bench=1",
        ...LINK_DEFAULTS,
      }),
    );
  });
  if (perSecond) await spread(url, 1000 / perSecond);
  return seeded;
}

function spread(url: string, intervalMs: number): Promise<number> {
  const isEarlier = "(other.event_id, other.webhook_id) < (deliveries.event_id, deliveries.webhook_id)";
  const place = `(select count(*) from deliveries other where ${isEarlier})`;
  return withDatabase(url, (knex) =>
    knex("deliveries").update({
      due_at: knex.raw(`${Date.now() + SPREAD_AFTER_MS} + ${place} * ${intervalMs}`),
    }),
  );
}

function atMost<T>(concurrency: number, count: number, work: (index: number) => Promise<T>): Promise<T[]> {
  const limit = pLimit(concurrency);
  return Promise.all(Array.from({ length: count }, (_, index) => limit(() => work(index))));
}
