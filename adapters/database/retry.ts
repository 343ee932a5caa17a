import { setTimeout as sleep } from "node:timers/promises";
import type { Query, Runner } from "knex/lib/client.js";
import { isConflict, isConnectionLost, isDiskFull, isReadOnly, isTimeout } from "./errors.ts";
import { operationOf } from "./statement-observer.ts";

/** Whether a write was committed may be unknown, so the caller decides whether to retry. */
export class StorageUnavailable extends Error {
  readonly code = "ERR_UNAVAILABLE";

  constructor(cause: unknown) {
    super("the database is not available", { cause });
    this.name = "StorageUnavailable";
  }
}

const READS = new Set<unknown>(["select", "first", "pluck", "hasTable", "hasColumn"]);
const ATTEMPTS = 5;
const PAUSE_MS = 20;
// A caller is waiting for the result, so nothing is retried after this time.
const RETRY_WITHIN_MS = 5000;
// A slower failure is a server that doesn't respond: another attempt would wait as long, and hold up new requests.
const RECONNECT_WITHIN_MS = 1000;

/** Retries conflicts, reads after a lost connection, and a read-only refusal once. Throws StorageUnavailable. */
export async function withRetries<T>(run: () => Promise<T>, onlyReads: boolean): Promise<T> {
  const start = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      const isRefused = isReadOnly(error) && attempt === 1;
      const isLost = isConnectionLost(error) && performance.now() < start + RECONNECT_WITHIN_MS;
      const isSafe = isConflict(error) || isRefused || (onlyReads && isLost);
      const isLate = attempt === ATTEMPTS || performance.now() > start + RETRY_WITHIN_MS;
      if (!isSafe || isLate) throw toStorageError(error);
      await sleep(PAUSE_MS * attempt * (0.5 + Math.random()));
    }
  }
}

/** Runs a query outside of a transaction with retries. Each attempt needs a new runner. */
export function withQueryRetries<R extends Runner>(query: Query, createRunner: () => R): R {
  const { _method: method, sql } = query;
  // A schema builder has neither. A query on a connection that its caller has chosen can't use another one.
  if (query._connection || (method ?? sql) === undefined) return createRunner();
  const run = () => withRetries(() => createRunner().run(), isRead(query));
  return Object.assign(createRunner(), { run });
}

export function isRead({ _method: method, sql, _sequence: steps }: Query): boolean {
  if (sql !== undefined) return operationOf(sql) === "select";
  return steps ? steps.every((step) => READS.has(step.method)) : READS.has(method);
}

function toStorageError(error: unknown): unknown {
  const isOutage = isTimeout(error) || isConnectionLost(error) || isConflict(error);
  return isOutage || isDiskFull(error) || isReadOnly(error) ? new StorageUnavailable(error) : error;
}
