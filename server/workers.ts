import cluster, { type Worker } from "node:cluster";
import { openStorage } from "../adapters/index.ts";
import type { Settings } from "./config.ts";
import type { Demo } from "./demo.ts";
import { encryptionKey } from "./encryption.ts";
import type { Log } from "./log.ts";
import { prepareStorage } from "./service.ts";

/** Several processes that share one port. */
export type Workers = { base: string; demo?: Demo; close(): Promise<void> };

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

  cluster.on("exit", (worker, code, signal) => {
    if (stopping) return;
    log.error({ pid: worker.process.pid, code, signal }, "a worker died; another one takes its place");
    setTimeout(() => stopping || cluster.fork(), RESTART_MS);
  });
  const bases = await Promise.all(Array.from({ length: settings.WORKERS }, () => listening(cluster.fork())));

  return {
    base: bases[0] as string,
    ...(demo && { demo }),
    async close() {
      stopping = true;
      const workers = Object.values(cluster.workers ?? {}) as Worker[];
      await Promise.all(
        workers.map((worker) => {
          const { promise, resolve } = Promise.withResolvers<void>();
          worker.once("exit", () => resolve());
          worker.process.kill("SIGTERM");
          return promise;
        }),
      );
    },
  };
}

/** Resolves to the address that a worker reports; rejects when it dies first. */
function listening(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.once("message", (message: { base: string }) => resolve(message.base));
    worker.once("exit", (code) => reject(new Error(`a worker ended at its start with code ${code}`)));
  });
}
