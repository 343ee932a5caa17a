import { AsyncLocalStorage } from "node:async_hooks";
import type Sqlite from "better-sqlite3";
import { prepared, rollBack } from "./connection.ts";

export type TurnReads = ReturnType<typeof createTurnReads>;

/** Reads of a turn share a transaction: a small read takes less time than taking and releasing the lock. */
export function createTurnReads(connection: Sqlite.Database) {
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
    /** Runs a read in the asynchronous context of this call. */
    add: <Result>(read: () => Result): Promise<Result> =>
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
