import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type Sqlite from "better-sqlite3";
import type { SqliteSettings } from "./connection.ts";

/** Moves what the log holds into the database file, so that the log does not grow for ever. */
export type Checkpoints = {
  /** Told about every commit with its number of writes. */
  note(writes: number): void;
  close(): Promise<void>;
};

// About 4 MB of log with our rows: what SQLite itself would take as the moment.
const EVERY_WRITES = 4000;

/**
 * Checkpoints in two steps. A thread copies what is there, however long the disk takes; then this connection copies
 * the little that came meanwhile, after which the log begins anew. One step alone would either hold the event loop up
 * or never come to an end while writes go on.
 */
export function startCheckpoints(connection: Sqlite.Database, settings: SqliteSettings): Checkpoints {
  let worker: Worker | undefined;
  let writes = 0;
  let busy = false;

  function begin() {
    busy = true;
    writes = 0;
    worker ??= new Worker(new URL("./checkpoint-thread.ts", import.meta.url), {
      workerData: settings,
      execArgv: [],
    });
    worker.unref();
    worker.once("message", () => {
      busy = false;
      connection.pragma("wal_checkpoint(RESTART)");
    });
    worker.postMessage("checkpoint");
  }

  return {
    note(more) {
      writes += more;
      if (writes >= EVERY_WRITES && !busy) begin();
    },
    async close() {
      if (!worker) return;
      worker.ref();
      worker.postMessage("close");
      await once(worker, "exit");
    },
  };
}
