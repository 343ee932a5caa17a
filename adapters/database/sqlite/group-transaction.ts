import type Sqlite from "better-sqlite3";
import { prepared } from "./statements.ts";

export type Statement = { sql: string; bindings: unknown[] };

// The outcome of a write whose first statements succeeded, and whose group has to run again.
const INCOMPLETE = Symbol("incomplete");

/**
 * Creates a transaction for a group of independent writes: a failed write does not fail the others. It returns how many
 * rows each first statement changed, or an error, and throws if the caller must roll back.
 */
export function createGroupTransaction(connection: Sqlite.Database): (writes: Statement[][]) => unknown[] {
  const begin = connection.prepare("BEGIN IMMEDIATE");
  const commit = connection.prepare("COMMIT");
  const rollback = connection.prepare("ROLLBACK");
  const savepoint = connection.prepare("SAVEPOINT several");
  const release = connection.prepare("RELEASE several");

  function runAll(statements: Statement[], changes: number[]): void {
    for (const { sql, bindings } of statements) changes.push(prepared(connection, sql).run(bindings).changes);
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

  /** Runs the writes until one fails so that the whole transaction is rolled back, as on a full disk. */
  function runGroup(writes: Statement[][], run: (statements: Statement[]) => unknown): unknown[] {
    const outcomes: unknown[] = [];
    for (const statements of writes) {
      outcomes.push(run(statements));
      // Further writes would not be part of it.
      if (!connection.inTransaction) break;
    }
    return outcomes;
  }

  return (writes) => {
    begin.run();
    let outcomes = runGroup(writes, runPlainly);
    if (outcomes.includes(INCOMPLETE)) {
      if (connection.inTransaction) rollback.run();
      begin.run();
      outcomes = runGroup(writes, runWithSavepoint);
    }
    if (!connection.inTransaction) throw outcomes.at(-1);
    commit.run();
    return outcomes;
  };
}
