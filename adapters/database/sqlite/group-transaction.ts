import type Sqlite from "better-sqlite3";
import { prepared } from "./statements.ts";

export type Statement = { sql: string; bindings: unknown[] };

/** A transaction for a group of independent writes: a failed write does not fail the others. */
export type GroupTransaction = {
  /** Begins a transaction. Returns false while another process holds the lock, and throws after some seconds of that. */
  tryBegin(): boolean;
  /**
   * Runs the writes and commits. Returns the outcome of each write: the number of rows that its first statement changed,
   * or its error.
   * @throws Error when the transaction failed as a whole; the caller rolls it back
   */
  commit(writes: Statement[][]): unknown[];
};

// How long to wait for another process to release the lock.
const LOCK_WAIT_MS = 5000;

/** Prepares the group transaction of a connection. */
export function createGroupTransaction(connection: Sqlite.Database): GroupTransaction {
  const begin = connection.prepare("BEGIN IMMEDIATE");
  const commit = connection.prepare("COMMIT");
  const savepoint = connection.prepare("SAVEPOINT several");
  const release = connection.prepare("RELEASE several");
  let lockedSince: number | undefined;

  function run({ sql, bindings }: Statement): number {
    return prepared(connection, sql).run(bindings).changes;
  }

  function runTogether(statements: Statement[]): number {
    savepoint.run();
    try {
      const [first] = statements.map(run);
      release.run();
      return first as number;
    } catch (error) {
      if (connection.inTransaction) connection.exec("ROLLBACK TO several; RELEASE several");
      throw error;
    }
  }

  function runWrite(statements: Statement[]): unknown {
    try {
      return statements.length === 1 ? run(statements[0] as Statement) : runTogether(statements);
    } catch (error) {
      return error;
    }
  }

  return {
    tryBegin() {
      try {
        begin.run();
        lockedSince = undefined;
        return true;
      } catch (error) {
        lockedSince ??= performance.now();
        const isLocked = (error as { code?: string }).code === "SQLITE_BUSY";
        if (!isLocked || performance.now() > lockedSince + LOCK_WAIT_MS) throw error;
        return false;
      }
    },

    commit(writes) {
      const outcomes = writes.map(runWrite);
      // Some failures, such as a full disk, roll back the whole transaction.
      if (!connection.inTransaction) throw outcomes.find((outcome) => typeof outcome !== "number");
      commit.run();
      return outcomes;
    },
  };
}
