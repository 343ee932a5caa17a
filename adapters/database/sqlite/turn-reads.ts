import type Sqlite from "better-sqlite3";

/** Reads of a turn share a transaction: a small read takes less time than taking and releasing the lock. */
export function createTurnReads(connection: Sqlite.Database) {
  let waiting: (() => void)[] = [];
  const runAll = (reads: (() => void)[]) => {
    for (const read of reads) read();
  };
  const runTogether = connection.transaction(runAll);

  function run() {
    const reads = waiting;
    waiting = [];
    try {
      runTogether(reads);
    } catch {
      runAll(reads); // each takes the lock for itself, or reports why it can't
    }
  }

  return {
    /** Runs a read at the end of the turn. */
    add: <Result>(read: () => Result): Promise<Result> =>
      new Promise((resolve, reject) => {
        waiting.push(() => {
          try {
            resolve(read());
          } catch (error) {
            reject(error);
          }
        });
        if (waiting.length === 1) setImmediate(run);
      }),
    run,
  };
}
