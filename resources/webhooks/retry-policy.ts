import type { EndpointResponse } from "./send.ts";
import type { LeasedDelivery, Outcome } from "./types.ts";

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** The delays after failed attempts; the first attempt is immediate (Standard Webhooks 1.0.0, "Deliverability"). */
export const RETRY_DELAYS_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
] as const;

// The URL of an endpoint that hasn't accepted a test event may be of a server that didn't ask for them.
const VERIFICATION_RETRIES = 4;
// Spreads out the retries of deliveries that failed together.
const JITTER = 0.1;
// Limits how long an endpoint can pause its deliveries with one response.
const RETRY_AFTER_MAX_MS = 24 * HOUR_MS;
const THROTTLES = new Set([429, 502, 503, 504]);
const GONE = 410;
// The retry schedule takes three days. An endpoint that failed for most of it is unlikely to recover without a fix.
const DEAD_AFTER_MS = 60 * HOUR_MS;

/** A response that takes longer is slow: the endpoint is then scheduled like one that fails. */
export const SLOW_MS = 3 * SECOND_MS;
// After so many failures in a row, each further one blocks the webhook for a while: first 10 s, later longer.
const BLOCK_AFTER = 5;
const BLOCK_MS = 10 * SECOND_MS;
const BLOCK_MAX_MS = 5 * MINUTE_MS;

/** Decides whether a delivery succeeded, when to retry, and whether to disable the webhook. */
export function nextOutcome(
  { attemptCount, failingSince, failures, verifies }: LeasedDelivery,
  { status, retryAfter }: EndpointResponse,
  { now, ms }: { now: number; ms: number },
): Outcome {
  if (status !== undefined && status >= 200 && status < 300)
    return { status: "succeeded", isSlow: ms >= SLOW_MS };
  if (status === GONE) return { status: "failed", disable: "The endpoint responded with 410 Gone." };
  const delays = verifies ? RETRY_DELAYS_MS.slice(0, VERIFICATION_RETRIES) : RETRY_DELAYS_MS;
  const delay = delays[attemptCount];
  if (delay === undefined) {
    const isDead = failingSince !== null && now - failingSince > DEAD_AFTER_MS;
    return { status: "failed", ...(isDead && { disable: "All deliveries have failed for days." }) };
  }
  const requested = status !== undefined && THROTTLES.has(status) ? retryAfterMs(retryAfter, now) : 0;
  const retryAt = now + Math.max(Math.round(delay * jitter()), requested);
  const blocked = blockMs(failures + 1);
  return {
    status: "pending",
    retryAt,
    ...(requested > 0 && { pauseUntil: now + requested }),
    ...(blocked > 0 && { blockUntil: now + blocked }),
  };
}

/** Returns how long a number of failed attempts in a row blocks a webhook (circuit breaker). */
function blockMs(failures: number): number {
  return failures < BLOCK_AFTER ? 0 : Math.min(BLOCK_MS * 2 ** (failures - BLOCK_AFTER), BLOCK_MAX_MS);
}

function jitter(): number {
  return 1 - JITTER + 2 * JITTER * Math.random();
}

/** Parses `Retry-After` (RFC 9110 §10.2.3): seconds or an HTTP date. Returns 0 if it is missing or invalid. */
function retryAfterMs(retryAfter: string | undefined, now: number): number {
  if (!retryAfter) return 0;
  const delay = /^\d+$/.test(retryAfter) ? Number(retryAfter) * SECOND_MS : Date.parse(retryAfter) - now;
  return Number.isNaN(delay) ? 0 : Math.min(delay, RETRY_AFTER_MAX_MS);
}
