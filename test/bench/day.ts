import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import knexFactory from "knex";
import { knexConfig } from "../../adapters/database/engine.ts";
import { openStorage } from "../../adapters/index.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { newWebhookSecret } from "../../resources/webhooks/signature.ts";
import { hasPostgres, startPostgres } from "../harness/database/postgres.ts";
import { markVerified } from "../harness/webhooks.ts";
import { cleanUp } from "./cleanup.ts";
import { Meter } from "./day-cost.ts";
import { type Costs, reportDay } from "./day-report.ts";
import { clicks, DAY, FILLED, lookups, rateOf } from "./day-traffic.ts";
import { fill } from "./fill.ts";
import { createTally, type NextRequest, onSchedule, type Result } from "./load.ts";
import { KEY, seed } from "./ours.ts";
import type { Row } from "./table.ts";
import { fetchToken, introspections, links, resourceServer, tokens } from "./workloads.ts";
import { type Ours, section, type Workspace } from "./workspace.ts";

const RECEIVER = fileURLToPath(new URL("./servers/receiver.ts", import.meta.url));
const RECEIVER_HOST = "127.0.0.1";
// A day of 1:10,000 in a minute keeps a process about as busy as in a real deployment. The busier it is, the more requests
// share a statement.
const SMALLER = Number(process.env.BENCH_SCALE ?? 1);
const SCALE = 10_000 / SMALLER;
const HOUR_S = 2.5 * SMALLER;
const HOURS = 24;
// Requests per second of each kind, measured separately: about half of what saturates the process.
const RATES = { redirect: 2000, lookup: 2000, token: 500, link: 300, introspection: 800 };
const KIND_S = 10 * SMALLER;
const WARM_UP_S = 3;
// Few enough that most of the links are on pages of their own.
const AFTER_CHECKPOINT = 2000;

// No checkpoint interferes with the measurements: what the first change of a page after one costs is measured apart.
const SETTINGS = {
  shared_buffers: "512MB",
  max_wal_size: "8GB",
  checkpoint_timeout: "1h",
};

/**
 * A day of traffic on a PostgreSQL server of its own, scaled down, with what each kind of request costs and what follows
 * for the whole day.
 */
export const dayRows = () =>
  section(async (workspace): Promise<Row[]> => {
    if (!hasPostgres) {
      console.log("SKIPPED a day: the PostgreSQL server is not installed");
      return [];
    }
    const server = await startPostgres(SETTINGS);
    const remove = cleanUp(() => server.remove());
    const { ours, received } = await startDay(workspace, server.url);
    const meter = new Meter(ours, server);
    try {
      await meter.writeFullPages("off");
      const kinds = await kindsOf(ours);
      for (const [kind, next] of Object.entries(kinds))
        await meter.measure(next, STATUSES, RATES[kind as keyof typeof RATES], WARM_UP_S);
      const idle = await meter.calibrate();
      const costs = {} as Costs;
      for (const [kind, next] of Object.entries(kinds))
        costs[kind as keyof Costs] = await meter.measure(
          next,
          STATUSES,
          RATES[kind as keyof typeof RATES],
          KIND_S,
        );
      const day = await meter.around(() => simulate(ours, kinds));
      const fullPage = await afterCheckpoint(meter, ours);
      await expectDelivered(ours.url, received);
      const connections = await meter.connections();
      return reportDay({
        costs,
        day,
        idle,
        fullPage,
        connections,
        scale: SCALE,
        syncMs: workspace.syncMs(),
      });
    } finally {
      await meter.close();
      await workspace.close();
      await remove();
    }
  });

const STATUSES = [200, 201, 302];

/** Starts linkgate with many links, and with a webhook that is called for each new one. */
async function startDay(workspace: Workspace, url: string) {
  const receiver = await workspace.start({
    script: RECEIVER,
    env: { HOSTS: RECEIVER_HOST, FAIL_EVERY: "0" },
    ready: /^listening on (\d+)$/,
    cores: [1],
  });
  const origin = `http://${RECEIVER_HOST}:${receiver.port}`;
  const seeded = await seed(url);
  await createWebhook(url, seeded.organizationId, `${origin}/day`);
  await fill(url, { links: [{ count: FILLED, organizationId: seeded.organizationId }] });
  const env = { WEBHOOK_ALLOW_HOSTS: RECEIVER_HOST, COUNTRY_HEADER: "CF-IPCountry" };
  const ours = await workspace.restart(seeded, { env });
  const received = async () => ((await (await fetch(origin)).json()) as { events: number }).events;
  return { ours, received };
}

async function createWebhook(databaseUrl: string, organizationId: string, url: string): Promise<void> {
  const storage = openStorage(databaseUrl, Buffer.from(KEY, "base64url"));
  const knex = knexFactory(knexConfig(databaseUrl));
  try {
    const fields = { url, events: ["link.created" as const], enabled: true };
    await storage.webhooks.create(organizationId, OPERATOR, fields, newWebhookSecret());
    await markVerified({ knex }, await knex("webhooks").pluck("id"));
  } finally {
    await knex.destroy();
    await storage.close();
  }
}

type Kinds = Record<keyof typeof RATES, NextRequest>;

async function kindsOf({ host, clients }: Ours): Promise<Kinds> {
  const token = await fetchToken(host, clients[0] as NewClient);
  return {
    redirect: clicks(host),
    lookup: lookups(host),
    token: tokens(host, clients),
    link: links(host, token),
    introspection: introspections(host, token, resourceServer),
  };
}

/** Sends the requests of a day, hour by hour. */
async function simulate(ours: Ours, kinds: Kinds): Promise<Result> {
  const perLink = { redirects: DAY.redirects / DAY.links, tokens: DAY.tokens / DAY.links };
  const group = 1 + perLink.tokens + perLink.redirects;
  const next: NextRequest = (index) => {
    const place = index % group;
    if (place === 0) return kinds.link(index);
    return place <= perLink.tokens ? kinds.token(index) : kinds.redirect(index);
  };
  const mean = (group * DAY.links) / SCALE / (HOURS * HOUR_S);
  const total = { ...createTally(STATUSES).result() };
  for (let hour = 0; hour < HOURS; hour++) {
    const rate = mean * rateOf(hour);
    const result = await onSchedule({
      port: ours.port,
      next,
      expected: STATUSES,
      rate,
      seconds: HOUR_S,
    });
    total.answered += result.answered;
    total.wrong += result.wrong;
  }
  return total;
}

/** What a link that is followed for the first time after a checkpoint adds to the log, and with compression. */
export type FullPage = { walBytes: number; compressed: number; links: number };

/** Measures redirects right after a checkpoint. */
async function afterCheckpoint(meter: Meter, ours: Ours): Promise<FullPage> {
  const measure = async (value: "on" | "off", compression?: "lz4") => {
    await meter.writeFullPages(value, compression);
    const followed = new Set<number>();
    const next = clicks(ours.host, followed);
    const seconds = AFTER_CHECKPOINT / RATES.redirect;
    const cost = await meter.measure(next, STATUSES, RATES.redirect, seconds);
    return { bytes: cost.walBytes * cost.requests, links: followed.size };
  };
  const without = await measure("off");
  const full = await measure("on");
  const compressed = await measure("on", "lz4");
  return {
    walBytes: (full.bytes - without.bytes) / full.links,
    compressed: (compressed.bytes - without.bytes) / compressed.links,
    links: full.links,
  };
}

/** @throws Error unless every event was delivered */
async function expectDelivered(url: string, received: () => Promise<number>): Promise<void> {
  const knex = knexFactory(knexConfig(url));
  try {
    for (let attempt = 0; attempt < 100; attempt++) {
      const [row] = await knex("deliveries").count({ total: "*" });
      if ((await received()) >= Number(row?.total)) return;
      await sleep(100);
    }
    throw new Error("webhooks were not delivered");
  } finally {
    await knex.destroy();
  }
}
