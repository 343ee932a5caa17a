import type Sqlite from "better-sqlite3";
import type { BeginGroupState, GroupState, Row } from "./group-state.ts";
import { prepared } from "./statements.ts";

type Bound = { sql: string; bindings: unknown[] };
/** A statement whose row depends on the writes before it in its group. */
type Stateful = { sql: string; state: BeginGroupState; row: Row; bind(row: Row): unknown[] };
export type Statement = Bound | Stateful;

/** A transaction for a group of independent writes: a failed write does not fail the others. */
export type GroupTransaction = {
  /**
   * Runs the writes and commits. Returns the outcome of each write: the number of rows that its first statement changed,
   * or its error. Returns undefined, with nothing written, while another process holds the lock.
   * @throws Error when the transaction failed as a whole, or after some seconds of waiting for the lock; the caller rolls
   *   it back
   */
  run(writes: Statement[][]): unknown[] | undefined;
};

// The outcome of a write whose first statements succeeded, and whose group has to run again.
const INCOMPLETE = Symbol("incomplete");
// How long to wait for another process to release the lock.
const LOCK_WAIT_MS = 5000;

/** Prepares the group transaction of a connection. Calls `onStatement` for each statement of the writes with several. */
export function createGroupTransaction(
  connection: Sqlite.Database,
  onStatement: (sql: string) => void,
): GroupTransaction {
  const begin = connection.prepare("BEGIN IMMEDIATE");
  const commit = connection.prepare("COMMIT");
  const rollback = connection.prepare("ROLLBACK");
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

  /** Runs the statements of a write, and adds to `changes` how many rows each changed. Leaves the states as before if one fails. */
  function runAll(statements: Statement[], changes: number[]): void {
    const undo: (() => void)[] = [];
    try {
      for (const statement of statements) {
        if ("state" in statement) {
          const added = stateOf(statement.state).add(statement.row);
          undo.unshift(added.undo);
          const { sql, bind } = statement;
          changes.push(added.row ? runAndReport({ sql, bindings: bind(added.row) }) : 0);
        } else changes.push(runAndReport(statement));
      }
    } catch (error) {
      for (const step of undo) step();
      throw error;
    }
  }

  /** Runs a write without a savepoint: within a group, each would copy the pages that the whole group has changed. */
  function runPlainly(statements: Statement[]): unknown {
    const changes: number[] = [];
    try {
      runAll(statements, changes);
      return changes[0];
    } catch (error) {
      return changes.length === 0 ? error : INCOMPLETE;
    }
  }

  function runWithSavepoint(statements: Statement[]): unknown {
    const changes: number[] = [];
    savepoint.run();
    try {
      runAll(statements, changes);
      release.run();
      return changes[0];
    } catch (error) {
      if (connection.inTransaction) connection.exec("ROLLBACK TO several; RELEASE several");
      return error;
    }
  }

  function runSingle(statement: Bound): unknown {
    try {
      return run(statement);
    } catch (error) {
      return error;
    }
  }

  /** Runs the writes until one fails so that the whole transaction is rolled back, as on a full disk. */
  function runGroup(writes: Statement[][], runSeveral: (statements: Statement[]) => unknown): unknown[] {
    states = new Map();
    const outcomes: unknown[] = [];
    for (const statements of writes) {
      const [first, ...others] = statements;
      outcomes.push(others.length === 0 ? runSingle(first as Bound) : runSeveral(statements));
      // Further writes would not be part of it.
      if (!connection.inTransaction) break;
    }
    return outcomes;
  }

  function tryBegin(): boolean {
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
  }

  return {
    run(writes) {
      if (!tryBegin()) return undefined;
      let outcomes = runGroup(writes, runPlainly);
      if (outcomes.includes(INCOMPLETE)) {
        if (connection.inTransaction) rollback.run();
        // Another process may take the lock in between.
        if (!tryBegin()) return undefined;
        outcomes = runGroup(writes, runWithSavepoint);
      }
      if (!connection.inTransaction) throw outcomes.at(-1);
      for (const state of states.values()) for (const statement of state.end()) runAndReport(statement);
      commit.run();
      return outcomes;
    },
  };
}
