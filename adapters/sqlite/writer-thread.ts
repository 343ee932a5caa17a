import { parentPort, workerData } from "node:worker_threads";
import { openConnection } from "./connection.ts";
import { prepared } from "./statements.ts";
import type { Batch, Outcome } from "./writer.ts";

// Commits off the event loop: while this thread waits for the disk, the other one goes on answering.
const database = openConnection(workerData);
const begin = database.prepare("BEGIN IMMEDIATE");
const commit = database.prepare("COMMIT");
const texts: string[] = [];

parentPort?.on("message", (message: Batch | "close") => {
  if (message === "close") {
    database.close();
    parentPort?.close();
    return;
  }
  for (const [number, sql] of message.statements) texts[number] = sql;
  parentPort?.postMessage(runBatch(message.writes));
});

/** One transaction for all. A statement that fails is undone alone; its neighbours are committed. */
function runBatch(writes: Batch["writes"]): Outcome[] {
  try {
    begin.run();
    const outcomes = writes.map(runWrite);
    // Some failures (a full disk) take the whole transaction with them.
    if (!database.inTransaction) throw outcomes.find((outcome) => typeof outcome !== "number");
    commit.run();
    return outcomes;
  } catch (error) {
    if (database.inTransaction) database.exec("ROLLBACK");
    return writes.map(() => toFailure(error));
  }
}

function runWrite([number, bindings]: Batch["writes"][number]): Outcome {
  try {
    return prepared(database, texts[number] as string).run(bindings).changes;
  } catch (error) {
    return toFailure(error);
  }
}

function toFailure(error: unknown): Outcome {
  const { message, code } = error as { message: string; code?: string };
  return { message, code: String(code) };
}
