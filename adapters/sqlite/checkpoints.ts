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

/** Holds commits back until `release`. */
type Pause = () => Promise<{ release(): void }>;

/**
 * Checkpoints on a thread, in two steps: first what is there, however long the disk takes; then, while commits are held
 * back for a moment, the little that came meanwhile, after which the log begins anew. In one step it would either hold
 * everybody up or never come to an end while writes go on.
 */
export function startCheckpoints(settings: SqliteSettings, pause: Pause): Checkpoints {
  let worker: Worker | undefined;
  let writes = 0;
  let passes = 0;
  let underWay: Promise<void> | undefined;

  async function run(mode: "PASSIVE" | "RESTART") {
    worker ??= new Worker(new URL("./checkpoint-thread.ts", import.meta.url), {
      workerData: settings,
      execArgv: [],
    });
    worker.ref();
    worker.postMessage(mode);
    await once(worker, "message");
    worker.unref();
  }

  async function checkpoint() {
    writes = 0;
    await run("PASSIVE");
    // Under light load the log begins anew by itself, whenever all of it is copied.
    if (++passes % PASSES_PER_RESTART !== 0) return;
    const { release } = await pause();
    await run("RESTART").finally(release);
  }

  return {
    note(more) {
      writes += more;
      if (writes < EVERY_WRITES || underWay) return;
      // One that fails is tried again with the next writes.
      underWay = checkpoint()
        .catch(() => {})
        .finally(() => {
          underWay = undefined;
        });
    },
    async close() {
      await underWay;
      if (!worker) return;
      worker.ref();
      worker.postMessage("close");
      await once(worker, "exit");
    },
  };
}
