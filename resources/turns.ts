import { setTimeout as sleep } from "node:timers/promises";
import { Problem } from "./http/problem.ts";

/**
 * Runs the expensive work of each organization one piece after the other.
 * @throws Problem 429 if too many pieces are waiting
 */
export type InTurn = <T>(organizationId: string, work: () => Promise<T>) => Promise<T>;

// A piece may have waited for the database most of the time.
const MAX_PAUSE_MS = 50;
const RETRY_AFTER_S = 1;

type TurnOptions = {
  /** How many pieces of an organization may wait. */
  maxWaiting?: number;
  /** Whether each piece is followed by a pause as long as itself, so that half of the time is left to other requests. */
  pauses?: boolean;
};

/** Creates the turns of this process. */
export function createTurns({
  maxWaiting = Number.POSITIVE_INFINITY,
  pauses = true,
}: TurnOptions = {}): InTurn {
  const queues = new Map<string, { last: Promise<unknown>; size: number }>();

  return async (organizationId, work) => {
    const queue = queues.get(organizationId) ?? { last: Promise.resolve(), size: 0 };
    if (queue.size > maxWaiting) throw tooManyWaiting();
    queues.set(organizationId, queue);
    queue.size++;
    let start = 0;
    const result = queue.last.then(() => {
      start = performance.now();
      return work();
    });
    queue.last = result
      .catch(() => {})
      .then(() => (pauses ? sleep(Math.min(performance.now() - start, MAX_PAUSE_MS)) : undefined))
      .then(() => --queue.size === 0 && queues.delete(organizationId));
    return result;
  };
}

function tooManyWaiting(): Problem {
  const detail =
    "Your organization has too many searches or reports in progress. Try again when one has finished.";
  return new Problem(429, "rate_limited", detail, { headers: { "Retry-After": String(RETRY_AFTER_S) } });
}
