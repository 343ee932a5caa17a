import type Sqlite from "better-sqlite3";
import type { BeginGroupState, GroupState, Row } from "./group-state.ts";
import { prepared } from "./statements.ts";

type Bound = { sql: string; bindings: unknown[] };
/** A statement whose row depends on the writes before it in its group. */
type Stateful = { sql: string; state: BeginGroupState; row: Row; bind(row: Row): unknown[] };
export type Statement = Bound | Stateful;

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

/** Prepares the group transaction of a connection. Calls `onStatement` for each statement of the writes with several. */
export function createGroupTransaction(
  connection: Sqlite.Database,
  onStatement: (sql: string) => void,
): GroupTransaction {
  const begin = connection.prepare("BEGIN IMMEDIATE");
  const commit = connection.prepare("COMMIT");
  const savepoint = connection.prepare("SAVEPOINT several");
  const release = connection.prepare("RELEASE several");
  let lockedSince: number | undefined;
  let states = new Map<BeginGroupState, GroupState>();

  function stateOf(begin: BeginGroupState): GroupState {
    const state = states.get(begin) ?? begin(read);
    states.set(begin, state);
    return state;
  }

  function read(sql: string, bindings: unknown[]): Row[] {
    onStatement(sql);
    return prepared(connection, sql).all(bindings) as Row[];
  }

  function run({ sql, bindings }: Bound): number {
    return prepared(connection, sql).run(bindings).changes;
  }

  function runAndReport(statement: Bound): number {
    onStatement(statement.sql);
    return run(statement);
  }

  function runTogether(statements: Statement[]): number {
    const undo: (() => void)[] = [];
    savepoint.run();
    try {
      const [first] = statements.map((statement) => {
        if (!("state" in statement)) return runAndReport(statement);
        const added = stateOf(statement.state).add(statement.row);
        undo.unshift(added.undo);
        return added.row ? runAndReport({ sql: statement.sql, bindings: statement.bind(added.row) }) : 0;
      });
      release.run();
      return first as number;
    } catch (error) {
      for (const step of undo) step();
      if (connection.inTransaction) connection.exec("ROLLBACK TO several; RELEASE several");
      throw error;
    }
  }

  function runWrite(statements: Statement[]): unknown {
    const [first, ...others] = statements;
    try {
      return others.length === 0 ? run(first as Bound) : runTogether(statements);
    } catch (error) {
      return error;
    }
  }

  function storeStates() {
    for (const state of states.values()) for (const statement of state.end()) runAndReport(statement);
  }

  return {
    tryBegin() {
      try {
        begin.run();
        lockedSince = undefined;
        states = new Map();
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
      storeStates();
      commit.run();
      return outcomes;
    },
  };
}
