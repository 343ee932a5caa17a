import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "./database.ts";
import { persistently } from "./unavailable.ts";

/** Counts clicks beside the redirects that cause them. */
export type ClickCounter = {
  /** Counts one. It is stored with the next group, a commit away; a crash loses at most what waits for that one. */
  count(linkId: string, at: number): void;
  /** Resolves when everything counted so far is stored. */
  settled(): Promise<void>;
};

// So many links go in one statement.
const MAX_LINKS = 500;
const RETRY_MS = 500;

/** Makes the counter of one process. */
export function createClickCounter({ knex }: Database): ClickCounter {
  let counted = new Map<string, number>();
  let latest = 0;
  let flushing: Promise<void> | undefined;

  async function flush() {
    await new Promise((resolve) => setImmediate(resolve));
    while (counted.size > 0) {
      const batch = counted;
      counted = new Map();
      try {
        await store(batch, latest);
      } catch {
        for (const [id, clicks] of batch) counted.set(id, (counted.get(id) ?? 0) + clicks);
        await sleep(RETRY_MS);
      }
    }
    flushing = undefined;
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
    count(linkId, at) {
      counted.set(linkId, (counted.get(linkId) ?? 0) + 1);
      latest = Math.max(latest, at);
      flushing ??= flush();
    },
    settled: async () => flushing,
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
