import type { Clocks, Cost } from "./day-cost.ts";
import { DAY, distinctLinks, LINKS, PEAK, statisticsRows } from "./day-traffic.ts";
import { machine, printTable, type Row, row } from "./table.ts";

export type Costs = Record<"redirect" | "lookup" | "token" | "link" | "introspection", Cost>;

type Measured = {
  costs: Costs;
  /** The requests of the day together. */
  day: Cost;
  /** Processor time without requests, per millisecond. */
  idle: Clocks;
  /** What a link that is followed for the first time after a checkpoint adds to the log. */
  fullPage: { walBytes: number; compressed: number; links: number };
  /** Of the process to the database server. */
  connections: number;
  scale: number;
  note: string;
};

const SECONDS = 86_400;
// Of a core. Above that, requests wait for each other.
const UTILIZATION = 0.5;
const CHECKPOINT_S = [900, 3600];
const PAGE_BYTES = 8192;
// Of a link that is followed: its own, that of its statistics, and that of their primary key.
const PAGES_OF_LINK = 3;
const GB = 1e9;

export function reportDay(measured: Measured): Row[] {
  printMeasured(measured);
  const { day, scale } = measured;
  const [server, database] = [coresOf(day.serverUs), coresOf(day.databaseUs)];
  console.log(`\nComputed, for ${whole(REQUESTS)} requests (1:${whole(scale)}):\n`);
  printTable(
    ["", "mean", `busiest hour (× ${PEAK})`, `at ${percent(UTILIZATION)} of each core`],
    [
      ["requests per second", ...peaks(REQUESTS / SECONDS).slice(0, 2), ""],
      ["cores of linkgate", ...peaks(server)],
      ["cores of PostgreSQL", ...peaks(database)],
    ],
  );
  printStorage(measured);
  const title = `a day of ${millions(DAY.redirects)} redirects of ${millions(LINKS)} links, cores at the busiest hour`;
  return [row(`${title}: linkgate`, server * PEAK), row(`${title}: PostgreSQL`, database * PEAK)];
}

function printMeasured({ costs, day, idle, fullPage, connections, note }: Measured): void {
  console.log(`\n${machine()}, ${new Date().toISOString().slice(0, 10)}, ${note}`);
  console.log("\nMeasured, per request:\n");
  printTable(
    ["", "linkgate, µs", "PostgreSQL, µs", "log, bytes", "tables, bytes", "rows"],
    [
      ...Object.entries(costs).map(([kind, cost]) => [kind, ...cells(cost)]),
      [`the day, ${whole(day.requests)} requests`, ...cells(day)],
    ],
  );
  const sum = addUp(costs);
  console.log(`
The kinds add up to ${sum.map(whole).join(", ")} µs per request of the day.
Without requests: ${Object.values(idle).map(percent).join(", ")} of a core.
Connections: ${connections}.
The first redirect of a link after a checkpoint: ${whole(fullPage.walBytes)} further bytes of log, compressed with lz4 ${whole(fullPage.compressed)} (${fullPage.links} links).`);
}

function printStorage({ costs, day, fullPage }: Measured): void {
  const rows = statisticsRows(DAY.redirects);
  const bytesOfRow = costs.redirect.diskBytes / (costs.redirect.rows.click_counts as number);
  const compression = fullPage.compressed / fullPage.walBytes;
  const fullPages = CHECKPOINT_S.map((seconds) => {
    const followed = distinctLinks((DAY.redirects * seconds) / SECONDS);
    const bytes = (SECONDS / seconds) * followed * PAGES_OF_LINK * PAGE_BYTES;
    const title = `full pages, a checkpoint every ${seconds / 60} minutes: ${millions(followed)} links × ${PAGES_OF_LINK} pages at most`;
    return [title, `${gb(bytes)} · compressed ${gb(bytes * compression)}`];
  });
  const [ofLinks, ofTokens] = [costs.link.diskBytes, costs.token.diskBytes];
  console.log("");
  printTable(
    ["", "GB per day"],
    [
      ["write-ahead log without full pages", gb(day.walBytes * REQUESTS)],
      ...fullPages,
      [`click statistics: ${millions(rows)} rows × ${whole(bytesOfRow)} bytes`, gb(rows * bytesOfRow)],
      [`links, their events and deliveries: ${whole(ofLinks)} bytes each`, gb(ofLinks * DAY.links)],
      [
        `tokens: ${whole(ofTokens)} bytes each, purged after an hour, at most`,
        gb((ofTokens * DAY.tokens * PEAK) / 24),
      ],
    ],
  );
}

const REQUESTS = DAY.redirects + DAY.tokens + DAY.links;

/** The mean number of cores that so many requests a day take. */
const coresOf = (us: number) => (us * REQUESTS) / 1e6 / SECONDS;

/** Returns what a request of the day would cost if each kind cost as much as when measured separately. */
function addUp({ redirect, token, link }: Costs): number[] {
  return (["serverUs", "databaseUs"] as const).map(
    (unit) => (redirect[unit] * DAY.redirects + token[unit] * DAY.tokens + link[unit] * DAY.links) / REQUESTS,
  );
}

function cells({ serverUs, databaseUs, walBytes, diskBytes, rows }: Cost): string[] {
  const added = Object.entries(rows).filter(([, count]) => count >= 0.005);
  const names = added.map(([table, count]) => `${count.toFixed(2)} ${table}`).join(", ");
  return [...[serverUs, databaseUs, walBytes, diskBytes].map(whole), names];
}

function peaks(mean: number): string[] {
  return [mean, mean * PEAK, (mean * PEAK) / UTILIZATION].map((value) =>
    value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(1),
  );
}

const whole = (value: number) => Math.round(value).toLocaleString("en");
const millions = (value: number) => `${whole(value / 1e6)} M`;
const percent = (value: number) => `${(value * 100).toFixed(1).replace(/\.0$/, "")}%`;
const gb = (bytes: number) => whole(bytes / GB);
