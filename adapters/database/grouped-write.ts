import { createGatherer } from "./gather.ts";
import type { Row } from "./prepared-statements.ts";
import { StorageUnavailable } from "./retry.ts";

/** Stores the rows of a batch, for each write its row per table. */
export type StoreBatch = (batch: Row[][]) => Promise<void>;

type Waiting = { rows: Row[]; resolve(): void; reject(error: unknown): void };

/**
 * Creates a function that writes rows in batches and resolves when they are committed. An invalid row does not fail the
 * other rows of its batch. Batches are sorted by a column of the first row.
 */
export function createGroupedWrite(store: StoreBatch, sortedBy?: string): (...rows: Row[]) => Promise<void> {
  const add = createGatherer(async (batch: Waiting[]) => {
    if (sortedBy) batch.sort(byColumn(sortedBy));
    try {
      await store(batch.map(({ rows }) => rows));
      for (const { resolve } of batch) resolve();
    } catch (error) {
      // A lost connection leaves open whether the rows were stored. Any other error is caused by one of the rows, so they
      // are retried one by one.
      if (batch.length === 1 || error instanceof StorageUnavailable) {
        for (const { reject } of batch) reject(error);
      } else await Promise.all(batch.map(storeSingle));
    }
  });

  async function storeSingle({ rows, resolve, reject }: Waiting) {
    try {
      await store([rows]);
      resolve();
    } catch (error) {
      reject(error);
    }
  }

  return (...rows) => new Promise((resolve, reject) => add({ rows, resolve, reject }));
}

/** Compares by a column of the first row, in the same order in every process. */
function byColumn(column: string): (one: Waiting, other: Waiting) => number {
  const keyOf = ({ rows }: Waiting) => Buffer.from(String(rows[0]?.[column]));
  return (one, other) => Buffer.compare(keyOf(one), keyOf(other));
}
