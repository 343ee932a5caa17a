import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "./database.ts";
import { persistently } from "./unavailable.ts";

/** Counts clicks beside the redirects that cause them. */
export type ClickCounter = {
  /** Counts one. It is stored a moment later with all others; a crash loses at most what was counted in that moment. */
  count(linkId: string, at: number): void;
  /** Resolves when what was counted so far is stored, or could not be: the database is away, as a read will find. */
  settled(): Promise<void>;
  /** Resolves when nothing is left to store, however often that has to be tried. */
  drained(): Promise<void>;
};

// What a crash may lose, and how long another process may not see a click.
const GATHER_MS = 100;
// So many links go in one statement.
const MAX_LINKS = 500;
const RETRY_MS = 500;

type Round = { counted: Map<string, number>; latest: number; tried: PromiseWithResolvers<void> };

/** Makes the counter of one process. */
export function createClickCounter({ knex }: Database): ClickCounter {
  // What is counted now goes with the next round, while the current one is being stored.
  let next: Round | undefined;
  let current: Round | undefined;
  let storing: Promise<void> | undefined;
  let isUrgent = false;
  let goOn = () => {};

  function add(linkId: string, clicks: number, at: number) {
    next ??= { counted: new Map(), latest: 0, tried: Promise.withResolvers() };
    next.counted.set(linkId, (next.counted.get(linkId) ?? 0) + clicks);
    next.latest = Math.max(next.latest, at);
    storing ??= storeAll();
  }

  async function storeAll() {
    while (next) {
      await gather();
      current = next;
      next = undefined;
      const { counted, latest, tried } = current;
      let pause = 0;
      try {
        await store(counted, latest);
      } catch {
        for (const [id, clicks] of counted) add(id, clicks, latest);
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
      const timer = setTimeout(resolve, GATHER_MS);
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

  /** Links with the same number of clicks share a statement: most have one. Each group is stored once, or not at all. */
  async function store(batch: Map<string, number>, at: number) {
    for (const [clicks, ids] of byCount(batch)) {
      for (let start = 0; start < ids.length; start += MAX_LINKS) {
        const some = ids.slice(start, start + MAX_LINKS);
        await persistently(
          async () =>
            void (await knex("links")
              .whereIn("id", some)
              .update({ clicks: knex.raw("clicks + ?", [clicks]), last_clicked_at: at })),
          false,
        );
        for (const id of some) batch.delete(id);
      }
    }
  }

  return {
    count: (linkId, at) => add(linkId, 1, at),
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

function byCount(batch: Map<string, number>): Map<number, string[]> {
  const groups = new Map<number, string[]>();
  // In one order everywhere, so that two processes do not wait for one another's rows.
  for (const id of [...batch.keys()].sort()) {
    const clicks = batch.get(id) as number;
    const group = groups.get(clicks);
    if (group) group.push(id);
    else groups.set(clicks, [id]);
  }
  return groups;
}
