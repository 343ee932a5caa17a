import { parentPort, workerData } from "node:worker_threads";
import { openConnection } from "./connection.ts";

const connection = openConnection(workerData);

parentPort?.on("message", (message: "PASSIVE" | "RESTART" | "close") => {
  if (message === "close") {
    connection.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(checkpoint(message));
});

/** Returns the error instead of throwing it, which would end the thread. */
function checkpoint(mode: "PASSIVE" | "RESTART"): { code: string; message: string } | undefined {
  try {
    connection.pragma(`wal_checkpoint(${mode})`);
    return undefined;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return { code, message };
  }
}
