import { setTimeout as sleep } from "node:timers/promises";

const RETRY_MS = 500;

/**
 * Stores what was collected in memory, off the request path: `gatherMs` after it is scheduled, or when the previous
 * call of `store` ends, if that takes longer. A `store` that rejects keeps what it could not store, and is retried.
 */
export function createWriteBehindBuffer(store: () => Promise<void>, gatherMs: number) {
  let timer: NodeJS.Timeout | undefined;
  let next: Promise<void> | undefined;
  let last = Promise.resolve();

  function schedule(ms = gatherMs): void {
    timer ??= setTimeout(flush, ms);
  }

  function flush(): Promise<void> {
    clearTimeout(timer);
    next ??= last.then(run);
    last = next;
    return next;
  }

  async function run() {
    timer = undefined;
    next = undefined;
    await store().catch(() => schedule(RETRY_MS));
  }

  /** Resolves when everything so far is stored, or failed once: reads then fail as well. */
  const settled = (): Promise<void> => (timer ? flush() : last);

  return {
    schedule,
    settled,
    /** Resolves when everything is stored, after as many attempts as that takes. */
    async drained(): Promise<void> {
      await settled();
      while (timer) {
        await sleep(RETRY_MS, undefined, { ref: false });
        await settled();
      }
    },
  };
}
