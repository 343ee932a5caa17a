import type { LeasedDelivery, LeaseLimits } from "./types.ts";

// A slow endpoint must not use up the capacity of all others.
const PER_WEBHOOK = 10;
const TOTAL = 200;
// Failing webhooks get one attempt at a time. However many of them hang, half of the capacity remains for healthy ones.
const FAILING = { max: TOTAL / 2, perWebhook: 1 };

/** The attempts in flight in this process, and the capacity that they leave. */
export type InFlight = {
  /** Returns how many more deliveries may be leased; undefined at full capacity. */
  limits(): LeaseLimits | undefined;
  /** Tracks an attempt until its promise settles. */
  track(delivery: LeasedDelivery, attempt: Promise<void>): Promise<void>;
  /** Resolves when all current attempts have settled. */
  settled(): Promise<unknown>;
};

/** Creates the tracker of one process. */
export function createInFlight(): InFlight {
  const attempts = new Set<Promise<void>>();
  const perWebhook = new Map<string, number>();
  let failingCount = 0;

  function add({ webhookId, failingSince }: LeasedDelivery, count: 1 | -1) {
    if (failingSince !== null) failingCount += count;
    const total = (perWebhook.get(webhookId) ?? 0) + count;
    if (total > 0) perWebhook.set(webhookId, total);
    else perWebhook.delete(webhookId);
  }

  return {
    limits() {
      const max = TOTAL - attempts.size;
      if (max <= 0) return undefined;
      const failing = { ...FAILING, max: FAILING.max - failingCount };
      return { max, perWebhook: PER_WEBHOOK, failing, inFlight: perWebhook };
    },

    track(delivery, attempt) {
      add(delivery, 1);
      const tracked = attempt.finally(() => {
        attempts.delete(tracked);
        add(delivery, -1);
      });
      attempts.add(tracked);
      return tracked;
    },

    settled: () => Promise.all(attempts),
  };
}
