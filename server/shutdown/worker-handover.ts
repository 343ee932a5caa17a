import cluster from "node:cluster";
import { on } from "node:events";

// Sent by a worker and echoed by the primary process. Messages stay in order, so the echo arrives after all connections
// that were handed over before.
const ECHO = "echo";

/** Answers `takeConnections` of the workers; for the primary process, which accepts their connections. */
export function answerWorkers(): void {
  cluster.on("message", (worker, message) => message === ECHO && worker.send(ECHO));
}

/** Resolves when this worker has received all connections that were accepted for it so far. */
export async function takeConnections(): Promise<void> {
  if (!cluster.isWorker) return;
  process.send?.(ECHO);
  for await (const [message] of on(process, "message")) if (message === ECHO) return;
}
