import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Step } from "./checkpoint-thread.ts";
import type { SqliteSettings } from "./connection.ts";

/** Copies the write-ahead log into the database file, so the log doesn't grow without bounds. */
export type Checkpoints = {
  /** Counts the writes of each commit, and starts a checkpoint when there are enough. */
  recordWrites(count: number): void;
  close(): Promise<void>;
};

// About 4 MB of log with typical rows, which is SQLite's own default.
const EVERY_WRITES = 4000;

// The second step makes commits wait for the disk twice, for some tens of milliseconds. This is rare enough to affect few
// requests, and frequent enough to keep the log below a few hundred megabytes.
const PASSES_PER_RESTART = 10;

// A server that has enough writes for a checkpoint within this time is busy, and gets a log that need not grow. Others
// would give the space for nothing.
const BUSY_MS = 60_000;

// The delay before a failed checkpoint is retried. The disk may have space by then.
const RETRY_MS = 2000;

/** Postpones commits until `release`. */
type Pause = () => Promise<{ release(): void }>;

/**
 * Runs checkpoints on a thread, in two steps. The first copies the existing log, however long the disk takes. The second
 * postpones commits briefly, copies what was written in the meantime, and restarts the log. A single step would either
 * block all writers or never finish while writes continue.
 *
 * On a busy server, the first step also extends the log.
 *
 * A failed checkpoint, for example on a full disk, leaves the log unchanged: no data is lost, and writes continue. The
 * error is passed to `onError`, and the checkpoint is retried.
 */
export function startCheckpoints(
  settings: SqliteSettings,
  pause: Pause,
  onError: (error: Error) => void,
): Checkpoints {
  let worker: Worker | undefined;
  let writes = 0;
  let since = performance.now();
  let passes = 0;
  let current: Promise<void> | undefined;
  let retry: NodeJS.Timeout | undefined;

  function startThread(): Worker {
    const thread = new Worker(new URL("./checkpoint-thread.ts", import.meta.url), {
      workerData: settings,
      execArgv: [],
    });
    // The thread has ended. The next checkpoint starts a new one.
    thread.once("error", () => {
      worker = undefined;
    });
    return thread;
  }

  async function run(step: Step) {
    worker ??= startThread();
    const thread = worker;
    thread.ref();
    thread.postMessage(step);
    const [failure] = await once(thread, "message");
    thread.unref();
    if (failure) throw Object.assign(new Error(failure.message), { code: failure.code });
  }

  async function checkpoint() {
    const isBusy = performance.now() - since < BUSY_MS;
    writes = 0;
    since = performance.now();
    await run({ mode: "PASSIVE", extends: isBusy && settings.durable });
    // Under light load, SQLite restarts the log itself once all of it is copied.
    if (++passes % PASSES_PER_RESTART !== 0) return;
    const { release } = await pause();
    await run({ mode: "RESTART", extends: false }).finally(release);
  }

  function begin() {
    clearTimeout(retry);
    current = checkpoint()
      .catch((error) => {
        retry = setTimeout(begin, RETRY_MS).unref();
        onError(error);
      })
      .finally(() => {
        current = undefined;
      });
  }

  return {
    recordWrites(count) {
      writes += count;
      if (writes >= EVERY_WRITES && !current) begin();
    },
    async close() {
      await current;
      clearTimeout(retry);
      if (!worker) return;
      worker.ref();
      worker.postMessage("close");
      await once(worker, "exit");
    },
  };
}
