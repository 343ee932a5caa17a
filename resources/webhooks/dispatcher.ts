import { type AttemptOptions, createAttempt } from "./attempt.ts";
import { createInFlight } from "./in-flight.ts";
import type { LeasedDelivery } from "./types.ts";

type DispatcherOptions = AttemptOptions & {
  /** Called when the database is unavailable or an attempt fails unexpectedly; its delivery is retried. */
  onError(error: unknown): void;
};

// Retries and events of other processes become due without a notification.
const POLL_MS = 1000;
// Batches the notifications of many changes into one query.
const DEBOUNCE_MS = 20;
// How long a stop waits for responses. Nearly all endpoints respond within a second; a hanging one must not block the exit.
const GRACE_MS = 5000;

/** Delivers due events until stopped. Any number of processes can share the work. */
export function startDeliveries({ onError, ...options }: DispatcherOptions): {
  /**
   * Stops and resolves when the current attempts have ended. Slow ones are aborted after a grace period; they don't count as
   * attempts, and their deliveries are immediately due again with the same ID, for another process or the next start.
   */
  stop(): Promise<void>;
} {
  const { queue } = options;
  const abort = new AbortController();
  const attempt = createAttempt(options, abort.signal);
  const inFlight = createInFlight();
  let polling: Promise<void> | undefined;
  let scheduled: NodeJS.Timeout | undefined;
  let isStopped = false;

  function schedule() {
    if (!isStopped) scheduled ??= setTimeout(poll, DEBOUNCE_MS).unref();
  }

  function poll() {
    scheduled = undefined;
    if (polling) return schedule();
    polling = leaseAll()
      .catch(onError)
      .finally(() => {
        polling = undefined;
      });
  }

  async function leaseAll() {
    for (let limits = inFlight.limits(); limits && !isStopped; limits = inFlight.limits()) {
      const leased = await queue.lease(limits);
      if (leased.length === 0) return;
      for (const delivery of leased) start(delivery);
    }
  }

  function start(delivery: LeasedDelivery) {
    void inFlight.track(delivery, attempt(delivery).catch(onError)).then(schedule);
  }

  const timer = setInterval(poll, POLL_MS).unref();
  const unsubscribe = queue.onDue(schedule);
  schedule();

  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      clearTimeout(scheduled);
      unsubscribe();
      await polling;
      const grace = setTimeout(() => abort.abort(), GRACE_MS);
      await inFlight.settled();
      clearTimeout(grace);
    },
  };
}
