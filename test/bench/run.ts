import { postgresRows, workerRows } from "./cluster.ts";
import { deliveryRows, postgresDeliveryRows } from "./deliveries.ts";
import {
  clientRows,
  exchangeRows,
  introspectionRows,
  redirectRows,
  resourceRows,
  tokenRows,
} from "./engine.ts";
import { pin } from "./process.ts";
import { latencyRows, sizeRows, sweepRows } from "./scale.ts";
import { type Row, report } from "./table.ts";

const GENERATOR_CORE = 1;

/** The sections in order. Arguments select some of them. */
const sections: Record<string, () => Promise<Row[]>> = {
  tokens: tokenRows,
  resources: resourceRows,
  redirects: redirectRows,
  introspection: introspectionRows,
  exchange: exchangeRows,
  clients: clientRows,
  latency: latencyRows,
  sweep: sweepRows,
  postgres: postgresRows,
  workers: workerRows,
  deliveries: deliveryRows,
  "postgres-deliveries": postgresDeliveryRows,
  ...(process.argv.includes("--full") && { size: sizeRows }),
};

pin(process.pid, GENERATOR_CORE);
const chosen = process.argv.slice(2).filter((word) => word in sections);
const rows: Row[] = [];
for (const [name, run] of Object.entries(sections)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  console.log(`${new Date().toISOString()} ${name}`);
  try {
    rows.push(...(await run()));
  } catch (error) {
    // The other sections still run, but the run as a whole fails.
    console.error(`FAILED ${name}:`, error);
    process.exitCode = 1;
  }
}
report(rows);
