import { parentPort, workerData } from "node:worker_threads";
import { openConnection } from "./connection.ts";
import { prepared } from "./statements.ts";
import type { Batch, Outcome, Write } from "./writer.ts";

// Commits off the event loop: while this thread waits for the disk, the other one goes on answering.
const database = openConnection(workerData);
const begin = database.prepare("BEGIN IMMEDIATE");
const commit = database.prepare("COMMIT");

parentPort?.on("message", (message: Batch | "close") => {
  if (message === "close") {
    database.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(runBatch(message));
});

/** One transaction for all. A statement that fails is undone alone; its neighbours are committed. */
function runBatch(batch: Batch): Outcome[] {
  try {
    begin.run();
    const outcomes = batch.map(runWrite);
    // Some failures (a full disk) take the whole transaction with them.
    if (!database.inTransaction) throw firstError(outcomes);
    commit.run();
    return outcomes;
  } catch (error) {
    if (database.inTransaction) database.exec("ROLLBACK");
    return batch.map(() => toOutcome(error));
  }
}

function runWrite({ sql, bindings }: Write): Outcome {
  try {
    const { changes, lastInsertRowid } = prepared(database, sql).run(bindings);
    return { changes, lastID: Number(lastInsertRowid) };
  } catch (error) {
    return toOutcome(error);
  }
}

function toOutcome(error: unknown): Outcome {
  const { message, code } = error as { message: string; code?: string };
  return { error: { message, code: String(code) } };
}

function firstError(outcomes: Outcome[]): Error {
  const failed = outcomes.find((outcome) => "error" in outcome);
  const { message, code } =
    failed && "error" in failed ? failed.error : { message: "rolled back", code: "SQLITE_ABORT" };
  return Object.assign(new Error(message), { code });
}
