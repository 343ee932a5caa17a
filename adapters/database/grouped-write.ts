import { isCheckViolation } from "./engine.ts";
import { createGatherer } from "./gather.ts";
import { StorageUnavailable } from "./retry.ts";
import type { Row } from "./sqlite/group-state.ts";

/** Stores the rows of a batch, for each write its row per table. Concurrent batches of a process have different numbers. */
export type StoreBatch = (batch: Row[][], number: number) => Promise<void>;

type Waiting = { rows: Row[]; resolve(): void; reject(error: unknown): void };

/**
 * Creates a function that writes rows in batches and resolves when they are committed. An invalid row does not fail the
 * other rows of its batch. Batches are sorted by a column of the first row.
 */
export function createGroupedWrite(
  storeBatch: StoreBatch,
  sortedBy?: string,
): (...rows: Row[]) => Promise<void> {
  let batches = 0;

  const store = (batch: Waiting[]) =>
    storeBatch(
      batch.map(({ rows }) => rows),
      batches++,
    );

  const add = createGatherer(async (batch: Waiting[]) => {
    if (sortedBy) batch.sort(byColumn(sortedBy));
    try {
      await store(batch);
      for (const { resolve } of batch) resolve();
    } catch (error) {
      // A lost connection leaves open whether the rows were stored, and a counter that is at its limit needs more than
      // another attempt. Any other error is caused by one of the rows, so they are retried one by one.
      if (batch.length === 1 || error instanceof StorageUnavailable || isCheckViolation(error)) {
        for (const { reject } of batch) reject(error);
      } else await Promise.all(batch.map(storeSingle));
    }
  });

  async function storeSingle(one: Waiting) {
    try {
      await store([one]);
      one.resolve();
    } catch (error) {
      one.reject(error);
    }
  }

  return (...rows) => new Promise((resolve, reject) => add({ rows, resolve, reject }));
}

/** Compares by a column of the first row, in the same order in every process. */
function byColumn(column: string): (one: Waiting, other: Waiting) => number {
  const keyOf = ({ rows }: Waiting) => Buffer.from(String(rows[0]?.[column]));
  return (one, other) => Buffer.compare(keyOf(one), keyOf(other));
}
