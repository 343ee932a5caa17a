import { setTimeout as sleep } from "node:timers/promises";

/** What is gathered for a moment beside the requests that cause it, and then stored at once. */
export type Rounds<Batch> = {
  /** What goes with the next round, to be added to at once. */
  next(): Batch;
  /** Resolves when what was added so far is stored, or could not be: the database is away, as a read will find. */
  settled(): Promise<void>;
  /** Resolves when nothing is left to store, however often that has to be tried. */
  drained(): Promise<void>;
};

type RoundOptions<Batch> = {
  gatherMs: number;
  empty(): Batch;
  /** Stores a batch, and takes out of it what is stored. */
  store(batch: Batch): Promise<void>;
  /** Adds what could not be stored to what came meanwhile. */
  carry(left: Batch, next: Batch): void;
};

const RETRY_MS = 500;

/** Makes the rounds of one process. */
export function createRounds<Batch>({ gatherMs, empty, store, carry }: RoundOptions<Batch>): Rounds<Batch> {
  type Round = { batch: Batch; tried: PromiseWithResolvers<void> };
  // What comes now goes with the next round, while the current one is being stored.
  let next: Round | undefined;
  let current: Round | undefined;
  let storing: Promise<void> | undefined;
  let isUrgent = false;
  let goOn = () => {};

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

  /** Waits for more, until somebody wants to see what there is. */
  async function gather() {
    if (!isUrgent) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, gatherMs);
      goOn = resolve;
      await promise;
      clearTimeout(timer);
    }
    isUrgent = false;
  }

  function hurry() {
    if (!storing) return;
    isUrgent = true;
    goOn();
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
