import cluster from "node:cluster";
import { once } from "node:events";

// A worker sends it and gets it back, after the connections that were handed to it before: messages stay in order.
const ECHO = "echo";

/** Answers workers that call `takeConnections`; for the process that accepts their connections. */
export function answerWorkers(): void {
  cluster.on("message", (worker, message) => message === ECHO && worker.send(ECHO));
}

/** Resolves in a worker when it has all connections that were accepted for it so far. */
export async function takeConnections(): Promise<void> {
  if (!cluster.isWorker) return;
  process.send?.(ECHO);
  await once(process, "message");
}
