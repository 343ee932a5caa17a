import { setTimeout as sleep } from "node:timers/promises";

/** Collects writes in memory for a moment, off the request path, and stores them in batches. */
export type WriteBehindBuffer<Batch> = {
  /** Returns the batch that is stored next. Add to it synchronously. */
  next(): Batch;
  /** Resolves when everything added so far is stored or its first attempt failed, in which case reads fail as well. */
  settled(): Promise<void>;
  /** Resolves when everything is stored, after as many attempts as that takes. */
  drained(): Promise<void>;
};

type WriteBehindOptions<Batch> = {
  gatherMs: number;
  empty(): Batch;
  /** Stores a batch and removes from it what is stored. */
  store(batch: Batch): Promise<void>;
  /** Merges what could not be stored into the next batch. */
  carry(left: Batch, next: Batch): void;
};

const RETRY_MS = 500;

/** Creates a write-behind buffer of this process. */
export function createWriteBehindBuffer<Batch>({
  gatherMs,
  empty,
  store,
  carry,
}: WriteBehindOptions<Batch>): WriteBehindBuffer<Batch> {
  type Round = { batch: Batch; tried: PromiseWithResolvers<void> };
  // Writes are added to the next round while the current one is being stored.
  let next: Round | undefined;
  let current: Round | undefined;
  let storing: Promise<void> | undefined;
  let isUrgent = false;
  let endGathering = () => {};

  function open(): Batch {
    next ??= { batch: empty(), tried: Promise.withResolvers() };
    storing ??= storeAll();
    return next.batch;
  }

  async function storeAll() {
    while (next) {
      await gather();
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

  /** Waits for more writes, until the time is up or a caller waits for the result. */
  async function gather() {
    if (!isUrgent) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, gatherMs);
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
    settled: async () => {
      hurry();
      await (next ?? current)?.tried.promise;
    },
    drained: async () => {
      hurry();
      await storing;
    },
  };
}
