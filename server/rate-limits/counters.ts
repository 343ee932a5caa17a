import type { RateLimiterAbstract } from "rate-limiter-flexible";
import { toSeconds } from "./store.ts";

/** Counts one more; returns the seconds to wait if that exceeds the limit, or 0. */
export async function count(limiter: RateLimiterAbstract, key: string): Promise<number> {
  const { consumedPoints, msBeforeNext } = await limiter.penalty(key);
  return consumedPoints > limiter.points ? toSeconds(msBeforeNext) : 0;
}

/** Returns the seconds to wait if the limit is reached, or 0; counts nothing. */
export async function secondsUntilOpen(limiter: RateLimiterAbstract, key: string): Promise<number> {
  const state = await limiter.get(key);
  if (!state || state.msBeforeNext <= 0 || state.consumedPoints < limiter.points) return 0;
  return toSeconds(state.msBeforeNext);
}
