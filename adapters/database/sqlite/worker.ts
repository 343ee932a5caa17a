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
/** A read, a group of writes to commit, or a checkpoint: to copy the write-ahead log into the database file. */
export type Request = { read: Statement } | { write: Statement[][] } | "checkpoint";
/** An error as a message can have it. */
export type Failure = { code: string; message: string };
/** The answer has the rows of a read, or for each write how many rows its first statement changed, or why it failed. */
export type Response = { answer: unknown[] } | { failure: Failure };

const { settings, log } = workerData as { settings: SqliteSettings; log: LogFile };
const connection = openConnection(settings);
connection.pragma(`synchronous = ${synchronousOf(settings)}`);
connection.pragma(`busy_timeout = ${LOCK_WAIT_MS}`);

const run = ({ sql, bindings }: Statement) => prepared(connection, sql).run(bindings).changes;
/** Within a transaction, this is a savepoint: if a statement fails, those before it are undone. */
const runAllOrNone = connection.transaction((statements: Statement[]) => statements.map(run));

/** A failed write doesn't fail the others. */
const commit = connection.transaction((writes: Statement[][]) =>
  writes.map((statements) => {
    try {
      const [changes] = statements.length > 1 ? runAllOrNone(statements) : statements.map(run);
      return changes;
    } catch (error) {
      // On a full disk, the transaction is rolled back. Further writes would not be part of it.
      if (!connection.inTransaction) throw error;
      return toFailure(error);
    }
  }),
);

function answer(request: Request): unknown[] {
  if (request === "checkpoint") return connection.pragma("wal_checkpoint(PASSIVE)") as unknown[];
  if ("read" in request) return prepared(connection, request.read.sql).all(request.read.bindings);
  try {
    const outcomes = commit.immediate(request.write);
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
