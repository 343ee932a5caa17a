import { setTimeout as sleep } from "node:timers/promises";
import { isAway, isConflict } from "./engine.ts";

/** The database cannot answer now. Whether a write was done may not be known: the caller decides to try again. */
export class StorageUnavailable extends Error {
  constructor(cause: unknown) {
    super("the database is not available", { cause });
    this.name = "StorageUnavailable";
  }
}

const ATTEMPTS = 5;
const PAUSE_MS = 20;

/**
 * Runs one statement or transaction again where that is safe: when the database undid it for the sake of another one,
 * and after a cut connection if it only reads.
 * @throws StorageUnavailable when it was not, or did not help
 */
export async function persistently<T>(run: () => Promise<T>, onlyReads: boolean): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      const isSafe = isConflict(error) || (onlyReads && isAway(error));
      if (!isSafe || attempt === ATTEMPTS) throw toUnavailable(error);
      await sleep(PAUSE_MS * attempt * (0.5 + Math.random()));
    }
  }
}

function toUnavailable(error: unknown): unknown {
  return isAway(error) || isConflict(error) ? new StorageUnavailable(error) : error;
}

/** A store whose every call tells an absent database from a defect. */
export function explained<Store extends object>(store: Store): Store {
  return Object.fromEntries(
    Object.entries(store).map(([name, method]) => [
      name,
      (...args: unknown[]) =>
        (method as (...args: unknown[]) => Promise<unknown>)(...args).catch((error: unknown) => {
          throw toUnavailable(error);
        }),
    ]),
  ) as Store;
}
