import { count } from "./counters.ts";
import type { RateLimitStore } from "./store.ts";

// Three of a million codes are valid at a time, so guessing succeeds with a probability of 0.3% per day.
const ATTEMPTS = 10;
const WINDOW_S = 15 * 60;

/** Limits guesses of a second factor per account. Only someone who knows the password can make any. */
export type SecondFactorLimits = {
  /** Counts an attempt before it is made, so concurrent attempts count. Returns the seconds to wait, or 0. */
  attempt(userId: string): Promise<number>;
  /** Forgets the attempts of an account after one succeeds. */
  succeeded(userId: string): Promise<void>;
};

export function createSecondFactorLimits(isOn: boolean, rateLimitStore: RateLimitStore): SecondFactorLimits {
  const accounts = rateLimitStore.create("second-factor", ATTEMPTS, { seconds: WINDOW_S });
  return {
    attempt: async (userId) => (isOn ? count(accounts, userId) : 0),
    async succeeded(userId) {
      if (isOn) await accounts.delete(userId);
    },
  };
}
