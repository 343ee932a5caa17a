import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { openStorage } from "../../adapters/index.ts";
import { createDemo, type ShowDemo } from "../demo.ts";
import { encryptionKeys } from "../keys/encryption-keys.ts";
import type { Log } from "../log.ts";
import { collectWorkerMetrics } from "../observability/worker-metrics.ts";
import { shareCounters } from "../rate-limits/cluster.ts";
import type { Settings } from "../settings/config.ts";
import { publicUrlsOf } from "../settings/public-urls.ts";
import { StartupError } from "../startup-errors.ts";
import { listen, prepareStorage } from "./prepare.ts";
import { createSharedPort } from "./shared-port.ts";
import type { RunningProcess } from "./signals.ts";

export type Workers = RunningProcess & { base: string; port: number };

// Delays restarts, so a worker that crashes on start doesn't loop.
const RESTART_MS = 1000;

/** Migrates and creates the keys before the first worker starts. Throws StartupError. */
export async function startWorkers(settings: Settings, log: Log, showDemo: ShowDemo): Promise<Workers> {
  const storage = openStorage(settings.DATABASE_URL, encryptionKeys(settings), {
    timeoutMs: settings.DATABASE_TIMEOUT * 1000,
  });
  let stopping = false;
  let restarting: Promise<void> | undefined;
  // Workers that are being started or stopped by a restart, which handles their exit itself.
  const changing = new WeakSet<Worker>();

  async function prepare() {
    await prepareStorage(settings, storage, log);
    const port = await listen(
      createSharedPort(() => stopping),
      "PORT",
      settings,
    );
    const urls = publicUrlsOf(settings, port);
    await createDemo(settings, storage, log, (demo) => showDemo(demo, urls, port));
    return port;
  }

  const port = await prepare().finally(() => storage.close());
  const fork = () => cluster.fork({ PORT: String(port) });
  const { promise: failed, resolve: fail } = Promise.withResolvers<void>();
  cluster.on("message", (_worker, message) => message?.failed && fail());
  shareCounters();
  collectWorkerMetrics(log);
  cluster.on("exit", (worker, code, signal) => {
    if (stopping || changing.has(worker)) return;
    log.error({ pid: worker.process.pid, code, signal }, "worker died, starting another one");
    setTimeout(startAnother, RESTART_MS);
  });
  const bases = await Promise.all(Array.from({ length: settings.WORKERS }, () => listening(fork())));

  function startAnother() {
    if (!stopping) fork();
  }

  async function replace(worker: Worker) {
    const next = fork();
    changing.add(next).add(worker);
    try {
      await listening(next);
    } catch (error) {
      changing.delete(worker);
      if (worker.isDead()) startAnother();
      throw error;
    }
    changing.delete(next);
    await stopWorker(worker).catch((error) => log.error({ err: error }, "a replaced worker failed to stop"));
  }

  async function restartAll() {
    try {
      // Those that died in the meantime have been replaced already.
      for (const worker of workers()) if (!stopping && !worker.isDead()) await replace(worker);
      log.info("restarted all workers");
    } catch (error) {
      if (!stopping) log.error({ err: error }, "a new worker failed to start, the remaining ones are kept");
    }
  }

  return {
    base: bases[0] as string,
    port,
    failed,
    /** If a new worker doesn't start, the others keep running. */
    restart() {
      restarting ??= restartAll().finally(() => {
        restarting = undefined;
      });
      return restarting;
    },

    async close() {
      stopping = true;
      await Promise.all(workers().map(stopWorker));
    },

    waitingFor: () => workers().map(({ process: { pid } }) => `worker ${pid}`),
  };
}

const workers = () => Object.values(cluster.workers ?? {}) as Worker[];

const stops = new WeakMap<Worker, Promise<void>>();

/** Sends only one signal, because a second one would terminate the worker immediately. */
function stopWorker(worker: Worker): Promise<void> {
  const stop = stops.get(worker) ?? signalWorker(worker);
  stops.set(worker, stop);
  return stop;
}

async function signalWorker(worker: Worker): Promise<void> {
  if (worker.isDead()) return;
  const { pid } = worker.process;
  worker.process.kill("SIGTERM");
  const [code, signal] = await once(worker, "exit");
  // A worker that has only just started doesn't handle the signal yet, and dies of it.
  if (code !== 0 && signal !== "SIGTERM") throw new Error(`worker ${pid} exited with ${signal ?? code}`);
}

function listening(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    // Rate limits send messages, too.
    worker.on("message", ({ base }: { base?: string }) => base && resolve(base));
    worker.once("exit", (code) => reject(new StartupError(`A worker failed to start (exit code ${code}).`)));
  });
}
