import { AsyncLocalStorage } from "node:async_hooks";
import type Sqlite from "better-sqlite3";
import { rollBack } from "./connection.ts";
import { prepared } from "./statements.ts";

/**
 * Runs reads at the end of a turn of the event loop, in one transaction: a small read takes less time than to take and to
 * release the lock of the database. Each sees what was committed before it was added.
 */
export type TurnReads = {
  /** Runs a read in the asynchronous context of this call. */
  add<Result>(read: () => Result): Promise<Result>;
  /** Runs what was added so far. */
  run(): void;
};

/** Creates the reads of a connection. */
export function createTurnReads(connection: Sqlite.Database): TurnReads {
  let waiting: (() => void)[] = [];

  function run() {
    const reads = waiting;
    waiting = [];
    try {
      if (reads.length > 1) prepared(connection, "BEGIN").run();
    } catch {
      // Each read takes the lock for itself, or reports why it can't.
    }
    for (const read of reads) read();
    try {
      if (connection.inTransaction) prepared(connection, "COMMIT").run();
    } catch {
      rollBack(connection);
    }
  }

  return {
    add: (read) =>
      new Promise((resolve, reject) => {
        const inContext = AsyncLocalStorage.snapshot();
        waiting.push(() => {
          try {
            resolve(inContext(read));
          } catch (error) {
            reject(error);
          }
        });
        if (waiting.length === 1) setImmediate(run);
      }),
    run,
  };
}
