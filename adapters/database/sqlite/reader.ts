import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { SqliteSettings } from "./connection.ts";

export type Read = { sql: string; bindings: unknown[] };
export type ReadResult = { rows: unknown[] } | { error: { code: string; message: string } };

/** Runs reads on a thread with a connection of its own, one after the other, so they don't block the event loop. */
export type Reader = {
  read(query: Read): Promise<unknown[]>;
  /** Waits for pending reads. */
  close(): Promise<void>;
};

type Pending = PromiseWithResolvers<unknown[]>;

/** Creates the reader of a database. The thread starts with the first read, and doesn't keep the process running. */
export function createReader(settings: SqliteSettings): Reader {
  let worker: Worker | undefined;
  const pending: Pending[] = [];

  function startThread(): Worker {
    const thread = new Worker(new URL("./reader-thread.ts", import.meta.url), {
      workerData: settings,
      execArgv: [],
    });
    // The thread answers in order.
    thread.on("message", (result: ReadResult) => {
      const next = pending.shift();
      if (pending.length === 0) thread.unref();
      if ("rows" in result) next?.resolve(result.rows);
      else next?.reject(Object.assign(new Error(result.error.message), { code: result.error.code }));
    });
    // The thread has ended. The next read starts a new one.
    thread.once("error", (error) => {
      worker = undefined;
      for (const { reject } of pending.splice(0)) reject(error);
    });
    return thread;
  }

  return {
    read(query) {
      worker ??= startThread();
      const next: Pending = Promise.withResolvers();
      pending.push(next);
      worker.ref();
      worker.postMessage(query);
      return next.promise;
    },
    async close() {
      await Promise.allSettled(pending.map(({ promise }) => promise));
      if (!worker) return;
      worker.ref();
      worker.postMessage("close");
      await once(worker, "exit");
    },
  };
}
