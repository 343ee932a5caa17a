import { SYSTEM } from "../events/types.ts";
import { limitsOf } from "../plans.ts";
import { SLOW_MS } from "./retry-policy.ts";
import type { LeasedDelivery, LeaseLimits } from "./types.ts";

// Attempts at healthy endpoints. An attempt that takes longer than `SLOW_MS` no longer counts as one of them.
const HEALTHY = 200;
// All attempts, which bounds the open sockets.
const TOTAL = 1000;
// A slow endpoint must not use up the capacity of all others, nor an organization or a host that of all others.
const PER_WEBHOOK = 10;
const PER_HOST = 50;
const PER_ORGANIZATION = 40;
// Endpoints that fail or respond slowly get one attempt at a time, in a capacity of their own.
const FAILING = { max: 100, perWebhook: 1, perHost: 20, perOrganization: 10 };

/** The attempts in flight in this process, and the capacity that they leave. */
export type InFlight = {
  /** Returns how many more deliveries may be leased; undefined at full capacity. */
  limits(): LeaseLimits | undefined;
  /** Tracks an attempt until its promise settles. */
  track(delivery: LeasedDelivery, attempt: Promise<void>): Promise<void>;
  /** Resolves when all current attempts have settled. */
  settled(): Promise<unknown>;
};

type Current = { delivery: LeasedDelivery; startedAt: number };

/** Creates the tracker of one process. */
export function createInFlight(): InFlight {
  const attempts = new Map<Promise<void>, Current>();

  return {
    limits() {
      const { inFlight, slow, failing } = countAttempts([...attempts.values()], performance.now() - SLOW_MS);
      const max = Math.min(HEALTHY - (attempts.size - failing), TOTAL - attempts.size);
      if (max <= 0) return undefined;
      return {
        max,
        perWebhook: PER_WEBHOOK,
        perHost: PER_HOST,
        perOrganization: PER_ORGANIZATION,
        failing: { ...FAILING, max: FAILING.max - failing },
        inFlight,
        limitsOf,
        actor: SYSTEM,
        slow,
      };
    },

    track(delivery, attempt) {
      const tracked = attempt.finally(() => attempts.delete(tracked));
      attempts.set(tracked, { delivery, startedAt: performance.now() });
      return tracked;
    },

    settled: () => Promise.all(attempts.keys()),
  };
}

/** Counts attempts by webhook, host and organization. Those that started before `slowBefore` count as failing. */
function countAttempts(attempts: Current[], slowBefore: number) {
  const inFlight = new Map<string, number>();
  const slow = new Set<string>();
  let failing = 0;
  const add = (key: string) => inFlight.set(key, (inFlight.get(key) ?? 0) + 1);
  for (const { delivery, startedAt } of attempts) {
    const { webhookId, host, organizationId, failingSince, slowSince } = delivery;
    add(webhookId);
    add(host);
    add(organizationId);
    if (startedAt < slowBefore) slow.add(webhookId);
    else if (failingSince === null && slowSince === null) continue;
    failing++;
    add(failingKeyOf(host));
    add(failingKeyOf(organizationId));
  }
  return { inFlight, slow, failing };
}

/** Returns the key under which the failing attempts of an organization or at a host are counted. */
function failingKeyOf(key: string): string {
  return `failing ${key}`;
}
