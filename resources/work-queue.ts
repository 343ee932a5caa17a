import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { retryLater } from "./http/problem.ts";

/** Runs the expensive work of each organization one piece after the other. @throws Problem 429 if too many are waiting */
export type Enqueue = <T>(organizationId: string, work: () => Promise<T>) => Promise<T>;

const MAX_PAUSE_MS = 250;
const RETRY_AFTER_S = 1;
const TOO_MANY =
  "Your organization has too many searches or reports in progress. Try again when one has finished.";

type QueueOptions = {
  /** How many pieces of an organization may wait. */
  maxWaiting?: number;
  /** The message of the 429 if more would wait. */
  tooMany?: string;
  /** Whether each piece is followed by a pause as long as itself, so that others get half of the time. */
  pauses?: boolean;
};

/** Creates a queue of this process. At least one turn of the event loop passes between two pieces. */
export function createWorkQueue({
  maxWaiting = Number.POSITIVE_INFINITY,
  tooMany = TOO_MANY,
  pauses = true,
}: QueueOptions = {}): Enqueue {
  const queues = new Map<string, { last: Promise<unknown>; size: number }>();
  return async (organizationId, work) => {
    const queue = queues.get(organizationId) ?? { last: Promise.resolve(), size: 0 };
    if (queue.size > maxWaiting) throw retryLater(429, "rate_limited", tooMany, RETRY_AFTER_S);
    queues.set(organizationId, queue);
    queue.size++;
    let start = 0;
    const result = queue.last.then(() => {
      start = performance.now();
      return work();
    });
    queue.last = result
      .catch(() => {})
      .then(() => (pauses ? sleep(Math.min(performance.now() - start, MAX_PAUSE_MS)) : nextTurn()))
      .then(() => --queue.size === 0 && queues.delete(organizationId));
    return result;
  };
}
