import { parentPort, workerData } from "node:worker_threads";
import { openConnection } from "./connection.ts";

const connection = openConnection(workerData);

parentPort?.on("message", (message: "PASSIVE" | "RESTART" | "close") => {
  if (message === "close") {
    connection.close();
    parentPort?.close();
    return;
  }
  connection.pragma(`wal_checkpoint(${message})`);
  parentPort?.postMessage("done");
});
