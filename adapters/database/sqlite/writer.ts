import { setImmediate as endOfTurn } from "node:timers/promises";
import type { SqliteSettings } from "./connection.ts";
import type { Statement } from "./group-transaction.ts";
import type { LogFile } from "./log-file.ts";
import { createThread, errorOf } from "./thread.ts";
import type { Outcome, WriterRequest } from "./writer-thread.ts";

export type Writer = ReturnType<typeof createWriter>;

type Waiting = { statements: Statement[]; resolve(changes: number): void; reject(error: unknown): void };

// How many pages a checkpoint copies, which is SQLite's own default: commits wait for it. Larger ones would take longer,
// smaller ones more often.
const CHECKPOINT_PAGES = 1000;
const FIRST_CHECKPOINT = 200;
const MAX_CHANGES = 4000;
// Errors after which no commit is safe: a sync failed, or the log was deleted or replaced.
const FAILURES = new Set(["SQLITE_IOERR_FSYNC", "SQLITE_IOERR_DIR_FSYNC", "ERR_LOG_LOST"]);

/**
 * Creates the writer of an open database. Single writes are committed in groups on a thread: those that arrive while it
 * is busy form the next transaction, and each resolves when it is on the disk. After the only call of `onFailure`, every
 * write is rejected.
 */
export function createWriter(
  settings: SqliteSettings,
  log: LogFile,
  { onFailure, onCheckpointError }: Record<"onFailure" | "onCheckpointError", (error: Error) => void>,
) {
  const file = new URL("./writer-thread.ts", import.meta.url);
  const thread = createThread<WriterRequest, Outcome[]>(file, { settings, log });
  let last: Promise<unknown> = Promise.resolve();
  let waiting: Waiting[] = [];
  let changes = 0;
  let checkpointAfter = FIRST_CHECKPOINT;
  let failure: Error | undefined;

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
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
      const outcomes = await thread.ask(group.map(({ statements }) => statements));
      for (const [index, { resolve, reject }] of group.entries()) {
        const outcome = outcomes[index] as Outcome;
        if (typeof outcome === "number") resolve(outcome);
        else reject(errorOf(outcome));
      }
      recordChanges(group.length);
    } catch (error) {
      const reason = failIfLost(error);
      for (const { reject } of group) reject(reason);
    }
  }

  function recordChanges(count: number): void {
    changes += count;
    if (changes < checkpointAfter) return;
    const copied = changes;
    changes = 0;
    thread.ask("checkpoint").then(
      // How many pages a change takes depends on the size of rows and groups.
      ([pages]) => {
        const changesPerPage = copied / Math.max(1, Number(pages));
        checkpointAfter = Math.min(MAX_CHANGES, Math.ceil(CHECKPOINT_PAGES * changesPerPage));
      },
      // If the disk is full, nothing is lost, and the next checkpoint copies the rest.
      (error) => {
        if (failIfLost(error) === error) onCheckpointError(error);
      },
    );
  }

  /** Returns the error of all further writes if this error is a failure, or else the error. */
  function failIfLost(error: unknown): unknown {
    if (failure || !FAILURES.has(String((error as { code?: unknown }).code))) return failure ?? error;
    failure = toFailure(error as Error);
    onFailure(failure);
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
        if (waiting.length === 1) void inTurn(commitWaiting);
      }),

    /**
     * Runs work that writes on another connection, while no group is written. Resolves to its result.
     * @param changed returns how many rows the work has changed
     * @throws Error after a failure
     */
    exclusively: <T>(work: () => Promise<T>, changed: () => number): Promise<T> =>
      inTurn(async () => {
        if (failure) throw failure;
        try {
          return await work();
        } catch (error) {
          throw failIfLost(error);
        } finally {
          recordChanges(changed());
        }
      }),

    /** Waits for pending writes. */
    async close(): Promise<void> {
      await last;
      await thread.close();
    },
  };
}

/**
 * Returns the error of all writes after a failed sync, or after the log was lost. The system may have dropped the unwritten
 * pages from its cache, so a later sync that succeeds proves nothing.
 */
function toFailure({ message }: Error): Error {
  const reason = message.replace(/^COMMIT; - /, ""); // which Knex adds for its transactions
  return Object.assign(new Error(`the database failed: ${reason}`), { code: "ERR_DATABASE_FAILED" });
}
