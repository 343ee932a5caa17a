import { once } from "node:events";
import { parentPort, Worker } from "node:worker_threads";

export type Thread<Request, Answer> = ReturnType<typeof createThread<Request, Answer>>;

type Outcome<Answer> = { answer: Answer } | { error: { code: string; message: string } };

/** Starts with the first request, or again after it has died, and doesn't keep the process running. */
export function createThread<Request, Answer>(file: URL, workerData: unknown) {
  let worker: Worker | undefined;
  const pending: PromiseWithResolvers<Answer>[] = [];

  function start(): Worker {
    const thread = new Worker(file, { workerData, execArgv: [] });
    // The thread answers in order.
    thread.on("message", (outcome: Outcome<Answer>) => {
      const next = pending.shift();
      if (pending.length === 0) thread.unref();
      if ("answer" in outcome) next?.resolve(outcome.answer);
      else next?.reject(errorOf(outcome.error));
    });
    thread.once("error", (error) => {
      worker = undefined;
      for (const { reject } of pending.splice(0)) reject(error);
    });
    return thread;
  }

  return {
    ask(request: Request): Promise<Answer> {
      worker ??= start();
      const next = Promise.withResolvers<Answer>();
      pending.push(next);
      worker.ref();
      worker.postMessage(request);
      return next.promise;
    },
    async close(): Promise<void> {
      await Promise.allSettled(pending.map(({ promise }) => promise));
      if (!worker) return;
      worker.ref();
      worker.postMessage("close");
      await once(worker, "exit");
    },
  };
}

/** Answers the requests to this thread. An error is passed on, because it would end the thread. */
export function answerRequests<Request, Answer>(
  answer: (request: Request) => Answer,
  close: () => void,
): void {
  parentPort?.on("message", (request: Request | "close") => {
    if (request === "close") {
      close();
      parentPort?.close();
      return;
    }
    parentPort?.postMessage(outcomeOf(() => answer(request)));
  });
}

function outcomeOf<Answer>(answer: () => Answer): Outcome<Answer> {
  try {
    return { answer: answer() };
  } catch (error) {
    return { error: toPlain(error) };
  }
}

export function toPlain(error: unknown): { code: string; message: string } {
  const { code, message } = error as { code: string; message: string };
  return { code, message };
}

export function errorOf({ code, message }: { code: string; message: string }): Error {
  return Object.assign(new Error(message), { code });
}
