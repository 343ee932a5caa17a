import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { SqliteSettings } from "./connection.ts";

/** Moves what the log holds into the database file, so that the log does not grow for ever. */
export type Checkpoints = {
  /** Told about every commit with its number of writes. */
  note(writes: number): void;
  close(): Promise<void>;
};

// About 4 MB of log with our rows: what SQLite itself would take as the moment.
const EVERY_WRITES = 4000;

// The second step makes commits wait for the disk twice, some tens of milliseconds: seldom enough for few to meet it,
// often enough for the log to stay below some hundred megabytes.
const PASSES_PER_RESTART = 10;

// How soon a checkpoint that failed is tried again: the disk may have space by then.
const RETRY_MS = 2000;

/** Holds commits back until `release`. */
type Pause = () => Promise<{ release(): void }>;

/**
 * Checkpoints on a thread, in two steps: first what is there, however long the disk takes; then, while commits are held
 * back for a moment, the little that came meanwhile, after which the log begins anew. In one step it would either hold
 * everybody up or never come to an end while writes go on.
 *
 * A checkpoint that fails, on a full disk for example, leaves the log as it is: nothing is lost, and writes continue. It
 * is passed to `onError` and tried again.
 */
export function startCheckpoints(
  settings: SqliteSettings,
  pause: Pause,
  onError: (error: Error) => void,
): Checkpoints {
  let worker: Worker | undefined;
  let writes = 0;
  let passes = 0;
  let underWay: Promise<void> | undefined;
  let retry: NodeJS.Timeout | undefined;

  function startThread(): Worker {
    const thread = new Worker(new URL("./checkpoint-thread.ts", import.meta.url), {
      workerData: settings,
      execArgv: [],
    });
    // It has ended by then. The next checkpoint starts another one.
    thread.once("error", () => {
      worker = undefined;
    });
    return thread;
  }

  async function run(mode: "PASSIVE" | "RESTART") {
    worker ??= startThread();
    const thread = worker;
    thread.ref();
    thread.postMessage(mode);
    const [failure] = await once(thread, "message");
    thread.unref();
    if (failure) throw Object.assign(new Error(failure.message), { code: failure.code });
  }

  async function checkpoint() {
    writes = 0;
    await run("PASSIVE");
    // Under light load the log begins anew by itself, whenever all of it is copied.
    if (++passes % PASSES_PER_RESTART !== 0) return;
    const { release } = await pause();
    await run("RESTART").finally(release);
  }

  function begin() {
    clearTimeout(retry);
    underWay = checkpoint()
      .catch((error) => {
        retry = setTimeout(begin, RETRY_MS).unref();
        onError(error);
      })
      .finally(() => {
        underWay = undefined;
      });
  }

  return {
    note(more) {
      writes += more;
      if (writes >= EVERY_WRITES && !underWay) begin();
    },
    async close() {
      await underWay;
      clearTimeout(retry);
      if (!worker) return;
      worker.ref();
      worker.postMessage("close");
      await once(worker, "exit");
    },
  };
}
