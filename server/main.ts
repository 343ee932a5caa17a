import cluster from "node:cluster";
import { addressesOf } from "./addresses.ts";
import { readSettings, type Settings, WrongSettings } from "./config.ts";
import { type Demo, describeDemo } from "./demo.ts";
import { createLog, type Log } from "./log.ts";
import { startService } from "./service.ts";
import { type Running, stopOnSignals } from "./stop.ts";
import { startWorkers } from "./workers.ts";

// Requests have 10 s, then the database has a few. What manages processes often kills after 30 s.
const STOP_MS = 15_000;
// The first process lets the workers say what they wait for.
const STOP_WORKERS_MS = STOP_MS + 2_000;

async function main(): Promise<void> {
  const settings = readSettings();
  const log = createLog(settings.LOG_LEVEL);
  const starting = start(settings, log);
  const hasWorkers = cluster.isPrimary && settings.WORKERS > 1;
  stopOnSignals(starting, log, hasWorkers ? STOP_WORKERS_MS : STOP_MS);
  await starting;
}

async function start(settings: Settings, log: Log): Promise<Running> {
  if (cluster.isWorker) return serveAsWorker(settings, log);
  if (settings.WORKERS > 1) {
    const workers = await startWorkers(settings, log);
    announce(settings, workers.base, workers.demo);
    return workers;
  }
  const service = await startService(settings, log);
  announce(settings, service.addresses.base, service.demo);
  return service;
}

async function serveAsWorker(settings: Settings, log: Log): Promise<Running> {
  const service = await startService(settings, log);
  process.send?.({ base: service.addresses.base });
  return service;
}

/** Said at every log level: the address, and once the credentials to try it with. */
function announce(settings: Settings, base: string, demo: Demo | undefined): void {
  const addresses = addressesOf({ ...settings, BASE_URL: base }, 0);
  if (demo) console.log(describeDemo(demo, addresses));
  console.log(`linkgate listening on ${base}`);
}

main().catch((error: NodeJS.ErrnoException) => {
  console.error(isExpected(error) ? error.message : error);
  process.exit(1);
});

/** What whoever starts the service can mend; of everything else the stack is shown. */
function isExpected(error: NodeJS.ErrnoException): boolean {
  return error instanceof WrongSettings || error.name === "WrongEncryptionKey" || error.code === "EADDRINUSE";
}
