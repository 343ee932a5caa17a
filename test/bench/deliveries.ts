import { fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import knexFactory from "knex";
import { knexConfig } from "../../adapters/database/engine.ts";
import { onPostgres } from "./cluster.ts";
import { type Backlog, seedDeliveries } from "./ours.ts";
import type { ServerProcess } from "./process.ts";
import type { Row } from "./table.ts";
import { section, type Workspace } from "./workspace.ts";

const RECEIVER = fileURLToPath(new URL("./servers/receiver.ts", import.meta.url));
// The limit of attempts per host should not be what limits the rate.
const HOSTS = Array.from({ length: 16 }, (_, index) => `127.0.0.${index + 1}`);
const RECEIVER_CORE = 1;
type Workload = Omit<Backlog, "origins" | "url">;
const MANY = { organizations: 200, webhooks: 2, events: 50 };
const WORKLOADS: Record<string, Workload> = {
  "many organizations": MANY,
  "one organization": { organizations: 1, webhooks: 10, events: 1000 },
  // With a few new deliveries at a time, the service can't do much of the work for all of them together.
  "500 due per second": { organizations: 200, webhooks: 2, events: 15, perSecond: 500 },
};
// 1,000 deliveries per second and core.
const MAX_CPU_US = 1000;
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
    const note = `median of 300 syncs of 8 KB`;
    return [...rows, { name: "sync of the disk, ms", ours: syncMs(workspace.file("sync")), note }];
  });

/** The same on PostgreSQL, on a new database for each. */
export async function postgresDeliveryRows(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, workload] of Object.entries(WORKLOADS))
    rows.push(
      ...(await onPostgres((workspace, url) => deliver(workspace, url, `${name}, PostgreSQL`, workload))),
    );
  return rows;
}

async function deliver(workspace: Workspace, url: string, name: string, workload: Workload): Promise<Row[]> {
  const receiver = await workspace.start({
    script: RECEIVER,
    env: { HOSTS: HOSTS.join(",") },
    ready: /^listening on (\d+)$/,
    cores: [RECEIVER_CORE],
  });
  const origins = HOSTS.map((host) => `http://${host}:${receiver.port}`);
  const seeded = await seedDeliveries({ ...workload, url, origins });
  const total = workload.organizations * workload.webhooks * workload.events;
  const received = () => receivedBy(origins[0] as string);
  const { server } = await workspace.restart(seeded, { env: { WEBHOOK_ALLOW_HOSTS: HOSTS.join(",") } });
  const start = await sampleAt(0.1 * total, server, received);
  const end = await sampleAt(0.9 * total, server, received);
  await sampleAt(total, server, received);
  await server.stop();
  await expectDelivered(url, total, await received());
  const count = end.requests - start.requests;
  const cpu = ((end.cpuMs - start.cpuMs) * 1000) / count;
  return [
    { name: `deliveries, ${name}, per second`, ours: (count * 1000) / (end.at - start.at) },
    { name: `CPU per delivery, ${name}, µs`, ours: cpu, at_most: MAX_CPU_US, ok: cpu <= MAX_CPU_US },
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

/** @throws Error unless every delivery was received once and its attempt is stored */
async function expectDelivered(url: string, total: number, { requests, events }: Received): Promise<void> {
  const knex = knexFactory(knexConfig(url));
  try {
    const [row] = await knex("deliveries").where({ status: "succeeded", attempts: 1 }).count({ stored: "*" });
    if (Number(row?.stored) !== total || requests !== total || events !== total)
      throw new Error(
        `of ${total} deliveries, ${row?.stored} are stored; ${requests} requests for ${events}`,
      );
  } finally {
    await knex.destroy();
  }
}

/** Returns how long the disk takes to sync a write. */
function syncMs(file: string): number {
  const handle = openSync(file, "w");
  const page = Buffer.alloc(8192);
  const times = Array.from({ length: 300 }, () => {
    const start = performance.now();
    writeSync(handle, page);
    fdatasyncSync(handle);
    return performance.now() - start;
  });
  rmSync(file);
  return times.sort((one, other) => one - other)[150] as number;
}
