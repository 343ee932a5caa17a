import { Problem } from "../http/problem.ts";

/**
 * Runs the reads of each organization that may take long one after the other, so they leave room for other tenants.
 * @throws Problem 429 if too many are waiting
 */
export type ReadQueue = <T>(organizationId: string, read: () => Promise<T>) => Promise<T>;

// Enough for an app that searches in parallel. Each read may take seconds in a large organization.
const MAX_WAITING = 30;
const RETRY_AFTER_S = 1;

/** Creates the queue of this process. */
export function createReadQueue(): ReadQueue {
  const queues = new Map<string, { last: Promise<unknown>; size: number }>();

  return async (organizationId, read) => {
    const queue = queues.get(organizationId) ?? { last: Promise.resolve(), size: 0 };
    if (queue.size > MAX_WAITING) throw tooManyReads();
    queues.set(organizationId, queue);
    queue.size++;
    const result = queue.last.then(read);
    queue.last = result.catch(() => {});
    try {
      return await result;
    } finally {
      queue.size--;
      if (queue.size === 0) queues.delete(organizationId);
    }
  };
}

function tooManyReads(): Problem {
  const detail =
    "Your organization has too many searches or reports in progress. Try again when one has finished.";
  return new Problem(429, "rate_limited", detail, { headers: { "Retry-After": String(RETRY_AFTER_S) } });
}

/** Returns the error of a search that took too long. */
export function searchTimedOut(): Problem {
  const detail = "The search took too long. Try again, or search for a longer text.";
  return new Problem(503, "temporarily_unavailable", detail, {
    headers: { "Retry-After": String(RETRY_AFTER_S) },
  });
}
