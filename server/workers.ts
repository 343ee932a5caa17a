import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { openStorage } from "../adapters/index.ts";
import type { Settings } from "./config.ts";
import type { Demo } from "./demo.ts";
import { encryptionKeys } from "./keys/encryption-keys.ts";
import type { Log } from "./log.ts";
import { shareCounters } from "./rate-limits/cluster.ts";
import { prepareStorage } from "./service.ts";
import type { RunningProcess } from "./shutdown/signals.ts";
import { answerWorkers } from "./shutdown/worker-handover.ts";
import { StartupError } from "./startup-errors.ts";

/** Server processes that share one port. */
export type Workers = RunningProcess & { base: string; demo?: Demo };

// Delays restarts, so a worker that crashes on start doesn't loop.
const RESTART_MS = 1000;

/**
 * Starts `WORKERS` processes that share the port and the database, and replaces those that die. Migrates and creates
 * the keys and the demo organization before the first one starts.
 * @throws StartupError if the database can't be reached, or a worker fails to start
 */
export async function startWorkers(settings: Settings, log: Log): Promise<Workers> {
  const storage = openStorage(settings.DATABASE_URL, encryptionKeys(settings));
  const { demo } = await prepareStorage(settings, storage).finally(() => storage.close());
  let stopping = false;

  answerWorkers();
  shareCounters();
  cluster.on("exit", (worker, code, signal) => {
    if (stopping) return;
    log.error({ pid: worker.process.pid, code, signal }, "worker died, starting another one");
    setTimeout(() => stopping || cluster.fork(), RESTART_MS);
  });
  const bases = await Promise.all(Array.from({ length: settings.WORKERS }, () => listening(cluster.fork())));

  return {
    base: bases[0] as string,
    ...(demo && { demo }),
    /** Stops the workers. @throws Error if one doesn't stop cleanly */
    async close() {
      stopping = true;
      await Promise.all(workers().map(stopWorker));
    },

    waitingFor: () => workers().map(({ process: { pid } }) => `worker ${pid}`),
  };
}

const workers = () => Object.values(cluster.workers ?? {}) as Worker[];

async function stopWorker(worker: Worker): Promise<void> {
  const { pid } = worker.process;
  worker.process.kill("SIGTERM");
  const [code, signal] = await once(worker, "exit");
  if (code !== 0) throw new Error(`worker ${pid} exited with ${signal ?? code}`);
}

/** Resolves to the base URL that a worker reports; rejects if it exits first. */
function listening(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    // Rate limits send messages, too.
    worker.on("message", ({ base }: { base?: string }) => base && resolve(base));
    worker.once("exit", (code) => reject(new StartupError(`A worker failed to start (exit code ${code}).`)));
  });
}
