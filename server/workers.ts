import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { openStorage } from "../adapters/index.ts";
import type { Settings } from "./config.ts";
import type { Demo } from "./demo.ts";
import { encryptionKey } from "./encryption.ts";
import { answerWorkers } from "./handover.ts";
import type { Log } from "./log.ts";
import { prepareStorage } from "./service.ts";
import type { Running } from "./stop.ts";

/** Several processes that share one port. */
export type Workers = Running & { base: string; demo?: Demo };

// A worker that dies at once is not started again and again without a breath.
const RESTART_MS = 1000;

/**
 * Starts `WORKERS` processes that share the port and the database, and starts one again that dies. What one of them
 * has to do for all is done here, before.
 */
export async function startWorkers(settings: Settings, log: Log): Promise<Workers> {
  const storage = openStorage(settings.DATABASE_URL, encryptionKey(settings));
  const { demo } = await prepareStorage(settings, storage).finally(() => storage.close());
  let stopping = false;

  answerWorkers();
  cluster.on("exit", (worker, code, signal) => {
    if (stopping) return;
    log.error({ pid: worker.process.pid, code, signal }, "a worker died; another one takes its place");
    setTimeout(() => stopping || cluster.fork(), RESTART_MS);
  });
  const bases = await Promise.all(Array.from({ length: settings.WORKERS }, () => listening(cluster.fork())));

  return {
    base: bases[0] as string,
    ...(demo && { demo }),
    /** @throws Error when a worker did not stop cleanly */
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
  if (code !== 0) throw new Error(`worker ${pid} ended with ${signal ?? code}`);
}

/** Resolves to the address that a worker reports; rejects when it dies first. */
function listening(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.once("message", (message: { base: string }) => resolve(message.base));
    worker.once("exit", (code) => reject(new Error(`a worker ended at its start with code ${code}`)));
  });
}
