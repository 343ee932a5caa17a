import { setTimeout as sleep } from "node:timers/promises";

type WriteBehindOptions<Batch> = {
  gatherMs: number;
  empty(): Batch;
  store(batch: Batch): Promise<void>;
  carry(left: Batch, next: Batch): void;
};

const RETRY_MS = 500;

/**
 * Creates a buffer that collects writes in memory, off the request path, and stores them in batches: `gatherMs` after the
 * first write of a batch, or when the batch before it is stored, if that takes longer.
 */
export function createWriteBehindBuffer<Batch>({ gatherMs, empty, store, carry }: WriteBehindOptions<Batch>) {
  type Round = { batch: Batch; openedAt: number; tried: PromiseWithResolvers<void> };
  // Writes are added to the next round while the current one is being stored.
  let next: Round | undefined;
  let current: Round | undefined;
  let storing: Promise<void> | undefined;
  let isUrgent = false;
  let endGathering = () => {};

  function open(): Batch {
    next ??= { batch: empty(), openedAt: performance.now(), tried: Promise.withResolvers() };
    storing ??= storeAll();
    return next.batch;
  }

  async function storeAll() {
    while (next) {
      await gather(next);
      current = next;
      next = undefined;
      const { batch, tried } = current;
      let pause = 0;
      try {
        await store(batch);
      } catch {
        carry(batch, open());
        pause = RETRY_MS;
      }
      current = undefined;
      tried.resolve();
      if (pause) await sleep(pause);
    }
    storing = undefined;
  }

  async function gather({ openedAt }: Round) {
    if (!isUrgent) {
      const { promise, resolve } = Promise.withResolvers<void>();
      // The round may be overdue if the previous one took long to store.
      const timer = setTimeout(resolve, Math.max(0, openedAt + gatherMs - performance.now()));
      endGathering = resolve;
      await promise;
      clearTimeout(timer);
    }
    isUrgent = false;
  }

  function hurry() {
    if (!storing) return;
    isUrgent = true;
    endGathering();
  }

  return {
    next: open,
    /** Resolves when everything so far is stored, or failed once: reads then fail as well. */
    async settled(): Promise<void> {
      hurry();
      await (next ?? current)?.tried.promise;
    },
    /** Resolves when everything is stored, after as many attempts as that takes. */
    async drained(): Promise<void> {
      hurry();
      await storing;
    },
  };
}
