import { hasPostgres, startPostgres } from "../harness/database/postgres.ts";
import { until } from "../harness/webhooks.ts";
import { createMeter, type Load, type Meter } from "./day-cost.ts";
import { type Costs, reportDay } from "./day-report.ts";
import { clicks, DAY, FILLED, lookups, rateOf } from "./day-traffic.ts";
import { fill } from "./fill.ts";
import type { NextRequest } from "./load.ts";
import { createWebhook, startReceiver, verifyWebhooks } from "./receiver.ts";
import { seed, withStorage } from "./seed.ts";
import { fetchToken, introspections, links, tokens } from "./workloads.ts";
import type { Ours, Section, Workspace } from "./workspace.ts";
import { count, RESOURCE_SERVER, SCALE, Skipped } from "./workspace.ts";

const RECEIVER_HOST = "127.0.0.1";
// A day of 1:10,000 in a minute keeps a process about as busy as in a real deployment. The busier it is, the more requests
// share a statement.
const ONE_OF = 10_000 / SCALE;
const HOUR_S = 2.5 * SCALE;
const HOURS = Array.from({ length: 24 }, (_, hour) => hour);
// Requests per second of each kind, measured separately: about half of what saturates the process.
const RATES = { redirect: 2000, lookup: 2000, token: 500, link: 300, introspection: 800 };
const KIND_S = 10 * SCALE;
const WARM_UP_S = 3;
// Few enough that most of the links are on pages of their own.
const AFTER_CHECKPOINT = 2000;

// No checkpoint interferes with the measurements: what the first change of a page after one costs is measured apart.
const SETTINGS = { shared_buffers: "512MB", max_wal_size: "8GB", checkpoint_timeout: "1h" };

/**
 * A day of traffic on a PostgreSQL server of its own, scaled down, with what each kind of request costs and what follows
 * for the whole day.
 */
export const day: Section = {
  long: true,
  async run(workspace) {
    if (!hasPostgres) throw new Skipped("the PostgreSQL server is not installed");
    const database = await startPostgres(SETTINGS);
    workspace.defer(() => database.remove());
    const receiver = await startReceiver(workspace, [RECEIVER_HOST]);
    const ours = await startDay(workspace, database.url, `${receiver.origins[0]}/day`);
    const meter = createMeter(ours, database);
    workspace.defer(() => meter.close());
    await meter.writeFullPages("off");
    const kinds = await kindsOf(ours);
    const measureEach = async (seconds: number) => {
      const costs = {} as Costs;
      for (const kind of Object.keys(kinds) as (keyof Costs)[])
        costs[kind] = await meter.measure({ next: kinds[kind], rate: RATES[kind], seconds });
      return costs;
    };
    await measureEach(WARM_UP_S);
    const idle = await meter.calibrate();
    const costs = await measureEach(KIND_S);
    const cost = await meter.measure(...hoursOf(kinds));
    const fullPage = await afterCheckpoint(meter, ours);
    const created = await count(ours.url, "deliveries");
    await until(async () => receiver.received().events >= created || undefined);
    const connections = await meter.connections();
    const note = workspace.syncNote();
    return reportDay({ costs, day: cost, idle, fullPage, connections, scale: ONE_OF, note });
  },
};

async function startDay(workspace: Workspace, url: string, webhook: string): Promise<Ours> {
  const seeded = await seed(url);
  const { organizationId } = seeded;
  await withStorage(url, (storage) => createWebhook(storage, organizationId, webhook));
  await verifyWebhooks(url);
  await fill(url, { links: [{ count: FILLED, organizationId }] });
  const env = { WEBHOOK_ALLOW_HOSTS: RECEIVER_HOST, COUNTRY_HEADER: "CF-IPCountry" };
  return workspace.restart(seeded, { env });
}

type Kinds = Record<keyof Costs, NextRequest>;

async function kindsOf(ours: Ours): Promise<Kinds> {
  const { host, clients } = ours;
  const token = await fetchToken(ours);
  return {
    redirect: clicks(host),
    lookup: lookups(host),
    token: tokens(host, clients),
    link: links(host, token),
    introspection: introspections(host, token, RESOURCE_SERVER),
  };
}

function hoursOf(kinds: Kinds): Load[] {
  const perLink = { redirects: DAY.redirects / DAY.links, tokens: DAY.tokens / DAY.links };
  const group = 1 + perLink.tokens + perLink.redirects;
  const next: NextRequest = (index) => {
    const place = index % group;
    if (place === 0) return kinds.link(index);
    return place <= perLink.tokens ? kinds.token(index) : kinds.redirect(index);
  };
  const mean = (group * DAY.links) / ONE_OF / (HOURS.length * HOUR_S);
  return HOURS.map((hour) => ({ next, rate: mean * rateOf(hour), seconds: HOUR_S }));
}

/** Measures what a link that is followed for the first time after a checkpoint adds to the log, and with compression. */
async function afterCheckpoint(meter: Meter, { host }: Ours) {
  const rate = RATES.redirect;
  const measure = async (value: "on" | "off", compression?: "lz4") => {
    await meter.writeFullPages(value, compression);
    const followed = new Set<number>();
    const cost = await meter.measure({
      next: clicks(host, followed),
      rate,
      seconds: AFTER_CHECKPOINT / rate,
    });
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
