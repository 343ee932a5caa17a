import { setTimeout as sleep } from "node:timers/promises";
import { isAway, isConflict, isDiskFull } from "./engine.ts";

/** The database cannot answer now. Whether a write was done may not be known: the caller decides to try again. */
export class StorageUnavailable extends Error {
  constructor(cause: unknown) {
    super("the database is not available", { cause });
    this.name = "StorageUnavailable";
  }
}

const ATTEMPTS = 5;
const PAUSE_MS = 20;
// What took longer is not tried again: somebody is waiting for the answer.
const RETRY_WITHIN_MS = 5000;

/**
 * Runs one statement or transaction again where that is safe: when the database undid it for the sake of another one,
 * and after a cut connection if it only reads.
 * @throws StorageUnavailable when it was not, or did not help
 */
export async function persistently<T>(run: () => Promise<T>, onlyReads: boolean): Promise<T> {
  const deadline = performance.now() + RETRY_WITHIN_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      const isSafe = isConflict(error) || (onlyReads && isAway(error));
      const isLate = attempt === ATTEMPTS || performance.now() > deadline;
      if (!isSafe || isLate) throw toUnavailable(error);
      await sleep(PAUSE_MS * attempt * (0.5 + Math.random()));
    }
  }
}

function toUnavailable(error: unknown): unknown {
  const isOutage = isAway(error) || isConflict(error) || isDiskFull(error);
  return isOutage ? new StorageUnavailable(error) : error;
}

/** A store whose every call tells an absent database from a defect; those that only read are tried again. */
export function explained<Store extends object>(store: Store, ...reads: (keyof Store)[]): Store {
  return Object.fromEntries(
    Object.entries(store).map(([name, method]) => {
      const onlyReads = reads.includes(name as keyof Store);
      const call = (...args: unknown[]) =>
        onlyReads ? persistently(() => method(...args), true) : method(...args).catch(rethrow);
      return [name, call];
    }),
  ) as Store;
}

function rethrow(error: unknown): never {
  throw toUnavailable(error);
}
