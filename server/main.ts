import cluster from "node:cluster";
import { WrongEncryptionKey } from "../adapters/crypto/keys.ts";
import { rejectLostDatabase } from "./keys/encryption-keys.ts";
import { createLog, type Log } from "./log.ts";
import type { Service } from "./process/service.ts";
import { followSignals, type RunningProcess } from "./process/signals.ts";
import { startWorkers, type Workers } from "./process/workers.ts";
import { InvalidSettings, readSettings, type Settings } from "./settings/config.ts";
import { productionWarningsOf } from "./settings/production-warnings.ts";
import { publicUrlsOf } from "./settings/public-urls.ts";
import { StartupError, toFileError } from "./startup-errors.ts";
import { describeDemo, describeParts } from "./terminal/start-page.ts";

// Beyond SHUTDOWN_DELAY: requests get 10 s, then the database a few more. Process managers often send SIGKILL after 30 s.
const STOP_MS = 15_000;
// The primary process lets the workers report first what they wait for.
const STOP_WORKERS_MS = STOP_MS + 2_000;

async function main(): Promise<void> {
  const settings = readSettings();
  const log = createLog(settings.LOG_LEVEL, settings.LOG_FORMAT);
  if (cluster.isPrimary) for (const warning of productionWarningsOf(settings)) log.warn(warning);
  const starting = start(settings, log).catch((error) => {
    throw toFileError(error);
  });
  const hasWorkers = cluster.isPrimary && settings.WORKERS > 1;
  const limit = hasWorkers ? STOP_WORKERS_MS : STOP_MS;
  followSignals(starting, log, settings.SHUTDOWN_DELAY * 1000 + limit);
  await starting;
}

async function start(settings: Settings, log: Log): Promise<RunningProcess> {
  if (cluster.isPrimary) rejectLostDatabase(settings);
  if (cluster.isWorker) return serveAsWorker(settings, log);
  if (settings.WORKERS > 1) {
    const workers = await startWorkers(settings, log);
    announce(settings, workers);
    return workers;
  }
  const service = await startServing(settings, log);
  announce(settings, { base: service.urls.base, ...service });
  return service;
}

/** Loads the application, which the primary process of workers doesn't need. */
async function startServing(settings: Settings, log: Log): Promise<Service> {
  const { startService } = await import("./process/service.ts");
  return startService(settings, log);
}

async function serveAsWorker(settings: Settings, log: Log): Promise<RunningProcess> {
  const { failed, ...service } = await startServing(settings, log);
  process.send?.({ base: service.urls.base });
  // The primary process then stops all workers: what a worker wrote to a failed disk is lost for the others, too.
  void failed.then(() => process.send?.({ failed: true }));
  return service;
}

function announce(settings: Settings, { base, port, demo }: Pick<Workers, "base" | "port" | "demo">): void {
  const urls = publicUrlsOf({ ...settings, BASE_URL: base }, 0);
  if (demo || process.stdout.isTTY) console.log(describeParts(urls, port, settings));
  if (demo) console.log(describeDemo(demo, urls));
  console.log(`linkgate listening on ${base}`);
}

main().catch((error: Error) => {
  // The operator can fix these; every other error is printed with its stack.
  const isForOperator = [InvalidSettings, WrongEncryptionKey, StartupError].some(
    (type) => error instanceof type,
  );
  console.error(isForOperator ? error.message : error);
  process.exit(1);
});
