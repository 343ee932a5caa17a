import cluster from "node:cluster";
import { WrongEncryptionKey } from "../adapters/crypto/keys.ts";
import type { ShowDemo } from "./demo.ts";
import { rejectLostDatabase } from "./keys/encryption-keys.ts";
import { createLog, type Log } from "./log.ts";
import { createLogOutput, type LogOutput } from "./log-output.ts";
import { type RunningProcess, stopOnSignals } from "./process/signals.ts";
import { startWorkers } from "./process/workers.ts";
import { InvalidSettings, readSettings, type Settings } from "./settings/config.ts";
import { publicUrlsOf } from "./settings/public-urls.ts";
import { scopeWarningOf } from "./settings/rate-limit-scope.ts";
import { StartupError, toFileError } from "./startup-errors.ts";
import { describeDemo, describeParts } from "./terminal/start-page.ts";
import { STDERR, STDOUT, writeOut } from "./terminal/write-out.ts";

// Beyond SHUTDOWN_DELAY: requests get 10 s, then the database a few more. Process managers often send SIGKILL after 30 s.
const STOP_MS = 15_000;
// The primary process lets the workers report first what they wait for.
const STOP_WORKERS_MS = STOP_MS + 2_000;

// A terminal or pipe that takes nothing for this long has no reader.
const SHOW_MS = 5000;

async function main(): Promise<void> {
  const settings = readSettings();
  const output = createLogOutput(settings.LOG_FORMAT);
  const log = createLog(settings.LOG_LEVEL, output);
  const warning = scopeWarningOf(settings);
  if (cluster.isPrimary && warning) log.warn(warning);
  const starting = start(settings, log, output).catch((error) => {
    throw toFileError(error);
  });
  const hasWorkers = cluster.isPrimary && settings.WORKERS > 1;
  const limit = hasWorkers ? STOP_WORKERS_MS : STOP_MS;
  stopOnSignals(starting, log, settings.SHUTDOWN_DELAY * 1000 + limit);
  await starting;
}

async function start(settings: Settings, log: Log, output: LogOutput): Promise<RunningProcess> {
  if (cluster.isPrimary) rejectLostDatabase(settings);
  if (cluster.isWorker) return serveAsWorker(settings, log);
  let hasShownParts = false;
  const showDemo: ShowDemo = (demo, urls, port) => {
    const page = `${describeParts(urls, port, settings)}\n${describeDemo(demo, urls)}\n`;
    writeOut(settings.LOG_FORMAT === "json" ? STDERR : STDOUT, page, SHOW_MS);
    hasShownParts = true;
  };
  const { base, port, ...running } = await startPrimary(settings, log, showDemo);
  if (process.stdout.isTTY && settings.LOG_FORMAT !== "json" && !hasShownParts)
    output.print(`${describeParts(publicUrlsOf({ ...settings, BASE_URL: base }, port), port, settings)}\n`);
  output.print(`${announcementOf(settings, base, port)}\n`);
  return running;
}

async function startPrimary(settings: Settings, log: Log, showDemo: ShowDemo) {
  if (settings.WORKERS > 1) return startWorkers(settings, log, showDemo);
  const service = await startServing(settings, log, showDemo);
  return { ...service, base: service.urls.base };
}

/** Loads the application, which the primary process of workers doesn't need. */
async function startServing(settings: Settings, log: Log, showDemo?: ShowDemo) {
  const { startService } = await import("./process/service.ts");
  return startService(settings, log, {}, showDemo && { showDemo });
}

async function serveAsWorker(settings: Settings, log: Log): Promise<RunningProcess> {
  const { failed, ...service } = await startServing(settings, log);
  process.send?.({ base: service.urls.base });
  // The primary process then stops all workers: what a worker wrote to a failed disk is lost for the others, too.
  void failed.then(() => process.send?.({ failed: true }));
  return service;
}

/** Scripts wait for this line, which appears at every log level. */
function announcementOf({ LOG_FORMAT, HOST }: Settings, base: string, port: number): string {
  const msg = `linkgate listening on ${base}`;
  if (LOG_FORMAT !== "json") return msg;
  return JSON.stringify({ level: "info", time: new Date().toISOString(), address: HOST, port, msg });
}

main().catch((error: Error) => {
  // The operator can fix these; every other error is printed with its stack.
  const isForOperator = [InvalidSettings, WrongEncryptionKey, StartupError].some(
    (type) => error instanceof type,
  );
  console.error(isForOperator ? error.message : error);
  process.exit(1);
});
