import { setTimeout as sleep } from "node:timers/promises";
import { isConflict, isConnectionLost, isDiskFull, isTimeout } from "./engine.ts";

/** The database is unavailable. Whether a write was committed may be unknown, so the caller decides whether to retry. */
export class StorageUnavailable extends Error {
  readonly code = "ERR_UNAVAILABLE";

  constructor(cause: unknown) {
    super("the database is not available", { cause });
    this.name = "StorageUnavailable";
  }
}

const ATTEMPTS = 5;
const PAUSE_MS = 20;
// A caller is waiting for the result, so nothing is retried after this time.
const RETRY_WITHIN_MS = 5000;

/**
 * Runs a statement or transaction and retries it where that is safe: after a conflict, which the database rolled back,
 * and after a lost connection if it only reads.
 * @throws StorageUnavailable when it cannot be retried or still fails
 */
export async function withRetries<T>(run: () => Promise<T>, onlyReads: boolean): Promise<T> {
  const deadline = performance.now() + RETRY_WITHIN_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      const isSafe = isConflict(error) || (onlyReads && isConnectionLost(error));
      const isLate = attempt === ATTEMPTS || performance.now() > deadline;
      if (!isSafe || isLate) throw toStorageError(error);
      await sleep(PAUSE_MS * attempt * (0.5 + Math.random()));
    }
  }
}

/** Returns a store whose methods throw StorageUnavailable for an outage. Retries the methods named in `reads`. */
export function mapStorageErrors<Store extends object>(store: Store, ...reads: (keyof Store)[]): Store {
  return Object.fromEntries(
    Object.entries(store).map(([name, method]) => {
      const onlyReads = reads.includes(name as keyof Store);
      const call = (...args: unknown[]) =>
        onlyReads ? withRetries(() => method(...args), true) : method(...args).catch(rethrow);
      return [name, call];
    }),
  ) as Store;
}

function rethrow(error: unknown): never {
  throw toStorageError(error);
}

function toStorageError(error: unknown): unknown {
  const isLate = isTimeout(error) || isCanceled(error);
  const isOutage = isLate || isConnectionLost(error) || isConflict(error) || isDiskFull(error);
  return isOutage ? new StorageUnavailable(error) : error;
}

/** Returns whether a statement was canceled, because it took too long. */
export function isCanceled(error: unknown): boolean {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return code === "57014" || name === "KnexTimeoutError"; // PostgreSQL query_canceled; MariaDB
}
