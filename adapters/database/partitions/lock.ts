import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";

// How long a change waits for its lock. Requests that need the table queue behind it meanwhile.
const LOCK_MS = 100;
// How long a statement may take while it holds its lock.
const STATEMENT_MS = 2000;

// How long it waits for a vacuum, which PostgreSQL cancels after a second. Requests don't queue behind that.
const VACUUM_MS = 5000;

const LOCK_NOT_AVAILABLE = "55P03";

/** How often the purge tries. It tries again a minute later. */
export const BRIEFLY = { attempts: 3, pauseMs: 500 };

/** Returns whether a change failed because other transactions used the table. */
export function isLockTimeout(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === LOCK_NOT_AVAILABLE;
}

/**
 * Changes a table in a transaction that waits only briefly for its locks, and tries again after a pause. Requests pass
 * between the attempts.
 */
export async function withBriefLocks<T>(
  knex: Knex,
  table: string,
  { attempts, pauseMs }: { attempts: number; pauseMs: number },
  change: (trx: Knex.Transaction) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await knex.transaction(async (trx) => {
        await trx.raw(`set local lock_timeout = ${VACUUM_MS}`);
        await trx.raw("lock table ?? in share update exclusive mode", [table]);
        await trx.raw(`set local lock_timeout = ${LOCK_MS}; set local statement_timeout = ${STATEMENT_MS}`);
        return change(trx);
      });
    } catch (error) {
      if (!isLockTimeout(error) || attempt >= attempts) throw error;
      await sleep(pauseMs * (0.5 + Math.random()));
    }
  }
}
