import { parentPort, workerData } from "node:worker_threads";
import { openConnection } from "./connection.ts";
import { extendLog } from "./extend-log.ts";

const connection = openConnection(workerData);

parentPort?.on("message", (message: Step | "close") => {
  if (message === "close") {
    connection.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(run(message));
});

/** A checkpoint in one of SQLite's modes; `extends`: whether to extend the log afterwards. */
export type Step = { mode: "PASSIVE" | "RESTART"; extends: boolean };
/** The error of a step. */
export type Failure = { code: string; message: string };

/** Returns the error instead of throwing it, which would end the thread. */
function run(step: Step): Failure | undefined {
  try {
    const [pass] = connection.pragma(`wal_checkpoint(${step.mode})`) as { log: number }[];
    if (step.extends) extendLog(connection, workerData.filename, pass?.log ?? 0);
    return undefined;
  } catch (error) {
    const { code, message } = error as Failure;
    return { code, message };
  }
}
