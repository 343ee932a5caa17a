import { parentPort, workerData } from "node:worker_threads";
import { openConnection } from "./connection.ts";

const connection = openConnection(workerData);

parentPort?.on("message", (message: "checkpoint" | "close") => {
  if (message === "checkpoint") {
    connection.pragma("wal_checkpoint(PASSIVE)");
    parentPort?.postMessage("done");
    return;
  }
  connection.close();
  parentPort?.close();
});
