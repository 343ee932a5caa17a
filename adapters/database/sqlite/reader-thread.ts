import { parentPort, workerData } from "node:worker_threads";
import { openConnection } from "./connection.ts";
import type { Read, ReadResult } from "./reader.ts";
import { prepared } from "./statements.ts";

const connection = openConnection(workerData);
connection.pragma("query_only = ON");

parentPort?.on("message", (message: Read | "close") => {
  if (message === "close") {
    connection.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(run(message));
});

/** Returns the error instead of throwing it, which would end the thread. */
function run({ sql, bindings }: Read): ReadResult {
  try {
    return { rows: prepared(connection, sql).all(bindings) };
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return { error: { code, message } };
  }
}
