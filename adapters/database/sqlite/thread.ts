import { Worker } from "node:worker_threads";
import type { LogFile, SqliteSettings } from "./connection.ts";
import type { Failure, Request, Response } from "./worker.ts";

export type Thread = ReturnType<typeof createThread>;

/** Starts with the first request, or again after it has died, and doesn't keep the process running. */
export function createThread(workerData: { settings: SqliteSettings; log: LogFile }) {
  let worker: Worker | undefined;
  const pending: PromiseWithResolvers<unknown[]>[] = [];

  function start(): Worker {
    const thread = new Worker(new URL("./worker.ts", import.meta.url), { workerData, execArgv: [] });
    // The thread answers in order.
    thread.on("message", (response: Response) => {
      const next = pending.shift();
      if (pending.length === 0) thread.unref();
      if ("answer" in response) next?.resolve(response.answer);
      else next?.reject(errorOf(response.failure));
    });
    thread.once("error", (error) => {
      worker = undefined;
      for (const { reject } of pending.splice(0)) reject(error);
    });
    return thread;
  }

  return {
    ask(request: Request): Promise<unknown[]> {
      worker ??= start();
      const next = Promise.withResolvers<unknown[]>();
      pending.push(next);
      worker.ref();
      worker.postMessage(request);
      return next.promise;
    },
    async close(): Promise<void> {
      await Promise.allSettled(pending.map(({ promise }) => promise));
      await worker?.terminate(); // which closes its connection
    },
  };
}

export function errorOf({ code, message }: Failure): Error {
  return Object.assign(new Error(message), { code });
}
