import type { Leased, Outcome } from "./ports.ts";
import type { Answer } from "./send.ts";

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** The pauses after the attempts; the first one is made at once (Standard Webhooks 1.0.0, "Deliverability"). */
export const PAUSES_MS = [
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

// So that what failed together does not come back together.
const JITTER = 0.1;
// Receivers that ask for more patience have to be asked again.
const RETRY_AFTER_MAX_MS = 24 * HOUR_MS;
const THROTTLES = new Set([429, 502, 503, 504]);
const GONE = 410;
// The schedule takes three days. A receiver that took nothing else for most of it is not coming back by itself.
const DEAD_AFTER_MS = 60 * HOUR_MS;

/** What follows from an answer at a time. */
export function judge({ tries, failingSince }: Leased, { status, retryAfter }: Answer, now: number): Outcome {
  if (status !== undefined && status >= 200 && status < 300) return { status: "succeeded" };
  if (status === GONE) return { status: "failed", disable: "The receiver answered 410 Gone." };
  const pause = PAUSES_MS[tries];
  if (pause === undefined) {
    const isDead = failingSince !== null && now - failingSince > DEAD_AFTER_MS;
    return { status: "failed", ...(isDead && { disable: "Nothing has arrived there for days." }) };
  }
  const asked = status !== undefined && THROTTLES.has(status) ? askedPause(retryAfter, now) : 0;
  const retryAt = now + Math.max(Math.round(pause * jitter()), asked);
  return { status: "pending", retryAt, ...(asked > 0 && { pauseUntil: now + asked }) };
}

function jitter(): number {
  return 1 - JITTER + 2 * JITTER * Math.random();
}

/** RFC 9110 §10.2.3: seconds, or a date. */
function askedPause(retryAfter: string | undefined, now: number): number {
  if (!retryAfter) return 0;
  const pause = /^\d+$/.test(retryAfter) ? Number(retryAfter) * SECOND_MS : Date.parse(retryAfter) - now;
  return Number.isNaN(pause) ? 0 : Math.min(pause, RETRY_AFTER_MAX_MS);
}
