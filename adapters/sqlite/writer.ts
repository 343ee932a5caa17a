import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { SqliteSettings } from "./connection.ts";

/** Statements are sent once and named by their number from then on: their text is longer than their values. */
export type Batch = {
  statements: [number: number, sql: string][];
  writes: [statement: number, bindings: unknown[]][];
};
/** The number of rows changed, or why there are none. */
export type Outcome = number | { message: string; code: string };

type Waiting = {
  sql: string;
  bindings: unknown[];
  resolve(changes: number): void;
  reject(error: Error): void;
};

/**
 * The writes of a SQLite file: those that arrive while a commit is under way are committed together by the next one,
 * and each is answered after its commit. It is one transaction for many requests instead of one each.
 */
export type Writer = {
  /** Runs one statement; resolves to the number of rows changed. Rejects alone: a bad one does not fail its neighbours. */
  write(sql: string, bindings: unknown[]): Promise<number>;
  /** Waits for the commit under way and holds back the next one, until `release`: another connection may write. */
  pause(): Promise<{ release(): void }>;
  /** Commits what is waiting, then ends the thread. */
  close(): Promise<void>;
};

/** Starts the thread that commits. */
export function startWriter(settings: SqliteSettings): Writer {
  const worker = new Worker(new URL("./writer-thread.ts", import.meta.url), {
    workerData: settings,
    execArgv: [],
  });
  worker.unref();
  const numbers = new Map<string, number>();
  let waiting: Waiting[] = [];
  let underWay: Waiting[] = [];
  let scheduled = false;
  let holders: (() => void)[] = [];
  let held = false;
  let broken: Error | undefined;

  worker.on("message", (outcomes: Outcome[]) => {
    const done = underWay;
    underWay = [];
    worker.unref();
    for (const [index, write] of done.entries()) settle(write, outcomes[index] as Outcome);
    next();
  });
  worker.on("error", (error) => {
    broken = error;
    for (const write of [...underWay, ...waiting]) write.reject(error);
    underWay = [];
    waiting = [];
  });

  function toBatch(writes: Waiting[]): Batch {
    const batch: Batch = { statements: [], writes: [] };
    for (const { sql, bindings } of writes) {
      let number = numbers.get(sql);
      if (number === undefined) {
        number = numbers.size;
        numbers.set(sql, number);
        batch.statements.push([number, sql]);
      }
      batch.writes.push([number, bindings]);
    }
    return batch;
  }

  function next() {
    if (underWay.length > 0 || held) return;
    const holder = holders.shift();
    if (holder) {
      held = true;
      holder();
    } else if (waiting.length > 0) flush();
  }

  function flush() {
    underWay = waiting;
    waiting = [];
    worker.ref(); // a process does not end before its writes
    worker.postMessage(toBatch(underWay));
  }

  /** At the end of this turn of the event loop, so that everything it writes goes together. */
  function schedule() {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      next();
    });
  }

  return {
    write: (sql, bindings) =>
      new Promise((resolve, reject) => {
        if (broken) return reject(broken);
        waiting.push({ sql, bindings, resolve, reject });
        schedule();
      }),

    async pause() {
      const { promise, resolve } = Promise.withResolvers<void>();
      holders.push(resolve);
      next();
      await promise;
      return {
        release() {
          held = false;
          next();
        },
      };
    },

    async close() {
      const { release } = await this.pause();
      holders = [];
      release();
      while (underWay.length > 0 || waiting.length > 0) await once(worker, "message");
      worker.ref();
      worker.postMessage("close");
      await once(worker, "exit");
    },
  };
}

function settle(write: Waiting, outcome: Outcome): void {
  if (typeof outcome === "number") write.resolve(outcome);
  else write.reject(Object.assign(new Error(outcome.message), { code: outcome.code }));
}
