import { workerData } from "node:worker_threads";
import { LOCK_WAIT_MS, openConnection, rollBack, type SqliteSettings, synchronousOf } from "./connection.ts";
import { createGroupTransaction, type Statement } from "./group-transaction.ts";
import { type LogFile, verifyLog } from "./log-file.ts";
import { answerRequests, toPlain } from "./thread.ts";

/** A group of writes to commit, or a checkpoint: to copy the write-ahead log into the database file. */
export type WriterRequest = Statement[][] | "checkpoint";
/** The rows that a write's first statement changed, or its error; for a checkpoint, the pages in the log. */
export type Outcome = number | { code: string; message: string };

const { settings, log } = workerData as { settings: SqliteSettings; log: LogFile };
const connection = openConnection(settings);
connection.pragma(`synchronous = ${synchronousOf(settings)}`);
connection.pragma(`busy_timeout = ${LOCK_WAIT_MS}`);
const runGroup = createGroupTransaction(connection);

function commit(writes: Statement[][]): Outcome[] {
  try {
    const outcomes = runGroup(writes);
    verifyLog(log);
    return outcomes.map((outcome) => (typeof outcome === "number" ? outcome : toPlain(outcome)));
  } finally {
    rollBack(connection);
  }
}

answerRequests(
  (request: WriterRequest) => {
    if (request !== "checkpoint") return commit(request);
    const [{ log: pages }] = connection.pragma("wal_checkpoint(PASSIVE)") as [{ log: number }];
    return [pages];
  },
  () => connection.close(),
);
