import { parentPort, workerData } from "node:worker_threads";
import {
  LOCK_WAIT_MS,
  type LogFile,
  openConnection,
  prepared,
  rollBack,
  type SqliteSettings,
  synchronousOf,
  verifyLog,
} from "./connection.ts";

export type Statement = { sql: string; bindings: unknown[] };
/** A write whose statements name their SQL by its position in a list. */
export type Write = [position: number, bindings: unknown[]][];
/** A read, a group of writes to commit, or a checkpoint: to copy the write-ahead log into the database file. */
export type Request = { read: Statement } | { sql: string[]; writes: Write[] } | "checkpoint";
/** An error as a message can have it. */
export type Failure = { code: string; message: string };
/** The answer has the rows of a read, or for each write how many rows its first statement changed, or why it failed. */
export type Response = { answer: unknown[] } | { failure: Failure };

const { settings, log } = workerData as { settings: SqliteSettings; log: LogFile };
const connection = openConnection(settings);
connection.pragma(`synchronous = ${synchronousOf(settings)}`);
connection.pragma(`busy_timeout = ${LOCK_WAIT_MS}`);

type Run = (statements: Statement[]) => number | undefined;
const run = ({ sql, bindings }: Statement) => prepared(connection, sql).run(bindings).changes;
const HALF_WRITTEN = new Error("a later statement of a write failed");

const runWrite: Run = (statements) => {
  const changes: number[] = [];
  try {
    for (const statement of statements) changes.push(run(statement));
    return changes[0];
  } catch (error) {
    throw changes.length === 0 ? error : HALF_WRITTEN;
  }
};
/** Within a transaction, this is a savepoint. */
const runAllOrNone: Run = connection.transaction((statements) => statements.map(run)[0]);

/** A failed write doesn't fail the others. */
const runGroup = connection.transaction((writes: Statement[][], run: Run) =>
  writes.map((statements) => {
    try {
      return run(statements);
    } catch (error) {
      // On a full disk, the transaction is rolled back. Further writes would not be part of it.
      if (error === HALF_WRITTEN || !connection.inTransaction) throw error;
      return toFailure(error);
    }
  }),
);

function commit(sql: string[], packed: Write[]): unknown[] {
  const writes = packed.map((write) =>
    write.map(([position, bindings]) => ({ sql: sql[position] as string, bindings })),
  );
  try {
    return runGroup.immediate(writes, runWrite);
  } catch (error) {
    if (error !== HALF_WRITTEN) throw error;
    // Only then, because each savepoint copies the pages that the whole group has changed.
    return runGroup.immediate(writes, runAllOrNone);
  }
}

function answer(request: Request): unknown[] {
  if (request === "checkpoint") return connection.pragma("wal_checkpoint(PASSIVE)") as unknown[];
  if ("read" in request) return prepared(connection, request.read.sql).all(request.read.bindings);
  try {
    const outcomes = commit(request.sql, request.writes);
    verifyLog(log);
    return outcomes;
  } finally {
    rollBack(connection);
  }
}

function respond(request: Request): Response {
  try {
    return { answer: answer(request) };
  } catch (error) {
    return { failure: toFailure(error) }; // the error would end the thread
  }
}

function toFailure(error: unknown): Failure {
  const { code, message } = error as Failure;
  return { code, message };
}

parentPort?.on("message", (request: Request) => parentPort?.postMessage(respond(request)));
