import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import knexFactory from "knex";
import { knexConfig } from "../../adapters/database/engine.ts";
import { type Backlog, seedDeliveries } from "./backlog.ts";
import { onPostgres } from "./cluster.ts";
import type { ServerProcess } from "./process.ts";
import { judged, type Row } from "./table.ts";
import { section, type Workspace } from "./workspace.ts";

const RECEIVER = fileURLToPath(new URL("./servers/receiver.ts", import.meta.url));
// The limit of attempts per host should not be what limits the rate.
const HOSTS = Array.from({ length: 16 }, (_, index) => `127.0.0.${index + 1}`);
const RECEIVER_CORE = 1;
type Workload = Omit<Backlog, "origins" | "url"> & {
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

/** Deliveries of a backlog to a receiver on loopback. */
export const deliveryRows = () =>
  section(async (workspace) => {
    const rows: Row[] = [];
    for (const [name, workload] of Object.entries(WORKLOADS)) {
      const url = `sqlite:${workspace.file(name)}.sqlite`;
      rows.push(...(await deliver(workspace, url, `${name}, SQLite full`, workload)));
    }
    return rows;
  });

/** The same on PostgreSQL, on a new database for each. */
export async function postgresDeliveryRows(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, workload] of Object.entries(WORKLOADS))
    rows.push(
      ...(await onPostgres((workspace, [url]) =>
        deliver(workspace, url as string, `${name}, PostgreSQL`, workload),
      )),
    );
  return rows;
}

async function deliver(workspace: Workspace, url: string, name: string, workload: Workload): Promise<Row[]> {
  const receiver = await workspace.start({
    script: RECEIVER,
    env: { HOSTS: HOSTS.join(","), FAIL_EVERY: String(workload.failEvery ?? 0) },
    ready: /^listening on (\d+)$/,
    cores: [RECEIVER_CORE],
  });
  const origins = HOSTS.map((host) => `http://${host}:${receiver.port}`);
  const seeded = await seedDeliveries({ ...workload, url, origins });
  const deliveries = workload.organizations * workload.webhooks * workload.events;
  const total = deliveries + (workload.failEvery ? Math.floor(deliveries / workload.failEvery) : 0);
  const received = () => receivedBy(origins[0] as string);
  const { server } = await workspace.restart(seeded, { env: { WEBHOOK_ALLOW_HOSTS: HOSTS.join(",") } });
  const start = await sampleAt(0.1 * total, server, received);
  const end = await sampleAt(0.9 * total, server, received);
  await sampleAt(total, server, received);
  await server.stop();
  await expectDelivered(url, { deliveries, attempts: total }, await received());
  const count = end.requests - start.requests;
  const cpu = ((end.cpuMs - start.cpuMs) * 1000) / count;
  return [
    judged(
      {
        name: `deliveries, ${name}, per second and per second of CPU`,
        ours: [(count * 1000) / (end.at - start.at)],
        cpu: [cpu],
        ratio: [1e6 / cpu],
        note: workspace.syncNote(),
      },
      { atLeast: MIN_PER_CORE },
    ),
  ];
}

type Received = { requests: number; events: number };

async function receivedBy(origin: string): Promise<Received> {
  return (await (await fetch(origin)).json()) as Received;
}

/** Waits until so many deliveries are received, and reads the clocks. */
async function sampleAt(requests: number, server: ServerProcess, received: () => Promise<Received>) {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const sample = { ...(await received()), cpuMs: server.cpuMs(), at: performance.now() };
    if (sample.requests >= requests) return sample;
    if (sample.at > deadline) throw new Error(`${sample.requests} of ${requests} deliveries were received`);
    await sleep(POLL_MS);
  }
}

type Expected = { deliveries: number; attempts: number };

/** @throws Error unless every delivery was received, and all attempts are stored */
async function expectDelivered(url: string, expected: Expected, received: Received): Promise<void> {
  const knex = knexFactory(knexConfig(url));
  try {
    const [row] = await knex("deliveries")
      .where({ status: "succeeded" })
      .count({ deliveries: "*" })
      .sum({ attempts: "attempts" });
    const stored = { deliveries: Number(row?.deliveries), attempts: Number(row?.attempts) };
    const arrived = { deliveries: received.events, attempts: received.requests };
    for (const actual of [stored, arrived])
      if (!isDeepStrictEqual(actual, expected))
        throw new Error(`expected ${JSON.stringify({ expected, stored, arrived })}`);
  } finally {
    await knex.destroy();
  }
}
