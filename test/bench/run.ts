import { parseArgs } from "node:util";
import { byteRows } from "./bytes.ts";
import { cleanUpAll } from "./cleanup.ts";
import { postgresRows, workerRows } from "./cluster.ts";
import { dayRows } from "./day.ts";
import { deliveryRows, postgresDeliveryRows } from "./deliveries.ts";
import { clientRows, introspectionRows, redirectRows, resourceRows, tokenRows } from "./engine.ts";
import { exchangeRows } from "./exchange.ts";
import { growthRows, memoryRows, startRows } from "./growth.ts";
import { pageRows } from "./pages.ts";
import { poolerRows } from "./pooler.ts";
import { pin } from "./process.ts";
import { purgeRows } from "./purge.ts";
import { printReadmeTable } from "./readme-table.ts";
import { requestRows } from "./requests.ts";
import { sizeRows } from "./scale.ts";
import { searchRows } from "./search.ts";
import { soakRows } from "./soak.ts";
import { type Row, report } from "./table.ts";
import { latencyRows, sweepRows } from "./tails.ts";
import { addVersion } from "./versions.ts";

const GENERATOR_CORE = 1;

type Section = ((parts: string[]) => Promise<Row[]>) & {
  /** Parts that can be run on their own. */
  parts?: string[];
};

/** The sections in order. */
const sections: Record<string, Section> = {
  tokens: tokenRows,
  resources: resourceRows,
  redirects: redirectRows,
  introspection: introspectionRows,
  exchange: exchangeRows,
  clients: clientRows,
  latency: latencyRows,
  sweep: sweepRows,
  purge: purgeRows,
  postgres: postgresRows,
  workers: workerRows,
  requests: requestRows,
  pooler: poolerRows,
  deliveries: deliveryRows,
  "postgres-deliveries": postgresDeliveryRows,
  bytes: byteRows,
  day: dayRows,
  memory: memoryRows,
  start: startRows,
  search: searchRows,
  pages: pageRows,
  "memory-growth": growthRows,
  size: sizeRows,
  soak: soakRows,
};
// These take long, so they run with --full or by their name.
const ONLY_FULL = new Set(["day", "memory-growth", "size", "soak"]);

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: { full: { type: "boolean" }, list: { type: "boolean" }, against: { type: "string" } },
});
const known = Object.entries(sections).flatMap(([name, { parts = [] }]) => [
  name,
  ...parts.map((part) => `${name}/${part}`),
]);
const unknown = names.filter((name) => !known.includes(name));
if (options.list || unknown.length > 0) {
  for (const name of unknown) console.error(`unknown row: ${name}. The rows are:`);
  console.log(known.join("\n"));
  process.exit(unknown.length > 0 ? 1 : 0);
}

pin(process.pid, GENERATOR_CORE);
for (const signal of ["SIGINT", "SIGTERM"])
  process.once(signal, () => void cleanUpAll().finally(() => process.exit(1)));
if (options.against) addVersion(options.against);
const rows: Row[] = [];
for (const [name, section] of Object.entries(sections)) {
  const own = names.filter((word) => word === name || word.startsWith(`${name}/`));
  if (names.length > 0 ? own.length === 0 : ONLY_FULL.has(name) && !options.full) continue;
  const parts = own.includes(name) ? [] : own.map((word) => word.slice(name.length + 1));
  console.log(`${new Date().toISOString()} ${name}`);
  try {
    rows.push(...(await section(parts)));
  } catch (error) {
    // The other sections still run, but the run as a whole fails.
    console.error(`FAILED ${name}:`, error);
    process.exitCode = 1;
  }
}
await cleanUpAll();
report(rows);
printReadmeTable();
