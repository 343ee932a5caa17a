import type { EventEmitter } from "node:events";
import { setImmediate as endOfTurn } from "node:timers/promises";
import type Sqlite from "better-sqlite3";
import { prepared } from "./connection.ts";
import { errorOf, type Thread } from "./thread.ts";
import type { Failure, Request, Statement, Write } from "./worker.ts";

type Waiting = { statements: Statement[]; resolve(changes: number): void; reject(error: unknown): void };

// How many pages a checkpoint copies, which is SQLite's own default: commits wait for it. Larger ones would take longer,
// smaller ones more often.
const CHECKPOINT_PAGES = 1000;
// Errors after which no commit is safe: a sync failed, or the log was deleted or replaced.
const FAILURES = new Set(["SQLITE_IOERR_FSYNC", "SQLITE_IOERR_DIR_FSYNC", "ERR_LOG_LOST"]);

/**
 * Commits single writes in groups on a thread: those that arrive while it is busy form the next transaction, and each
 * resolves when it is on the disk. After the only event `failure`, every write is rejected. A failed checkpoint is an event
 * `checkpoint-error`. `reader` is a connection of this thread.
 */
export function createWriter(thread: Thread, reader: Sqlite.Database, events: EventEmitter) {
  let last: Promise<unknown> = Promise.resolve();
  let waiting: Waiting[] = [];
  let checkpointAt = CHECKPOINT_PAGES;
  let failure: Error | undefined;

  function afterOthers<T>(work: () => Promise<T>): Promise<T> {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  }

  async function commitWaiting(): Promise<void> {
    await endOfTurn();
    const group = waiting;
    waiting = [];
    try {
      if (failure) throw failure;
      const outcomes = await thread.ask(toRequest(group));
      for (const [index, { resolve, reject }] of group.entries()) {
        const outcome = outcomes[index] as number | Failure;
        if (typeof outcome === "number") resolve(outcome);
        else reject(errorOf(outcome));
      }
      void checkpoint();
    } catch (error) {
      // An error for each, because Knex adds the statement to the message.
      for (const { reject } of group) reject(errorOf(failIfLost(error) as Failure));
    }
  }

  /** Copies the log into the database file once it is long enough. */
  async function checkpoint(): Promise<void> {
    try {
      const pages = countLogged(reader);
      if (pages < checkpointAt) return;
      // If the disk is full, nothing is lost, and a later checkpoint copies the rest.
      checkpointAt = pages + CHECKPOINT_PAGES;
      await thread.ask("checkpoint");
      checkpointAt = CHECKPOINT_PAGES;
    } catch (error) {
      if (failIfLost(error) === error) events.emit("checkpoint-error", error);
    }
  }

  /** Returns the error of all further writes if this error is a failure, or else the error. */
  function failIfLost(error: unknown): unknown {
    if (failure || !FAILURES.has(String((error as { code?: unknown }).code))) return failure ?? error;
    failure = toFailure(error as Error);
    events.emit("failure", failure);
    return failure;
  }

  return {
    /**
     * Runs statements, all or none, and resolves to the number of rows that the first one changed. A failed write does
     * not fail the others of its group.
     */
    write: (statements: Statement[]): Promise<number> =>
      new Promise((resolve, reject) => {
        waiting.push({ statements, resolve, reject });
        if (waiting.length === 1) void afterOthers(commitWaiting);
      }),

    /** Runs work that writes on another connection, while no group is written. Rejects after a failure. */
    exclusively: <T>(work: () => Promise<T>): Promise<T> =>
      afterOthers(async () => {
        if (failure) throw failure;
        try {
          const result = await work();
          void checkpoint();
          return result;
        } catch (error) {
          throw failIfLost(error);
        }
      }),

    /** Waits for pending writes. */
    async close(): Promise<void> {
      await last;
      await thread.close();
    },
  };
}

/** Names each SQL once: a message is copied, and its texts are longer than the values of a write. */
function toRequest(group: Waiting[]): Request {
  const positions = new Map<string, number>();
  const writes = group.map(({ statements }) =>
    statements.map(({ sql, bindings }): Write[number] => {
      const position = positions.get(sql) ?? positions.size;
      positions.set(sql, position);
      return [position, bindings];
    }),
  );
  return { sql: [...positions.keys()], writes };
}

/** Returns how many pages of the log are not in the database file. */
function countLogged(connection: Sqlite.Database): number {
  const pages = prepared(connection, "pragma wal_checkpoint(NOOP)").get() as {
    log: number;
    checkpointed: number;
  };
  return pages.log - pages.checkpointed;
}

/**
 * Returns the error of all writes after a failed sync, or after the log was lost. The system may have dropped the unwritten
 * pages from its cache, so a later sync that succeeds proves nothing.
 */
function toFailure({ message }: Error): Error {
  const reason = message.replace(/^COMMIT; - /, ""); // which Knex adds for its transactions
  return Object.assign(new Error(`the database failed: ${reason}`), { code: "ERR_DATABASE_FAILED" });
}
