import type { RateLimiterAbstract } from "rate-limiter-flexible";
import { validateUsername } from "../credentials/usernames.ts";
import { count, secondsUntilOpen } from "./counters.ts";
import { networkKeyOf } from "./ip-key.ts";
import type { RateLimitStore } from "./store.ts";

// Users mistype a few times; guessing a password takes thousands of attempts.
const ATTEMPTS_PER_PAIR = 5;
const ATTEMPTS_PER_ADDRESS = 50;
const ATTEMPTS_PER_ACCOUNT = 100;

/** Limits on password attempts, per IP address, per account, and per pair of both. */
export type SignInLimits = {
  /** Counts an attempt before it is made, so concurrent attempts count. Returns the seconds to wait, or 0. */
  attempt(address: string, username: string): Promise<number>;
  /** Uncounts a successful attempt. */
  succeeded(address: string, username: string): Promise<void>;
};

export function createSignInLimits(isOn: boolean, rateLimitStore: RateLimitStore): SignInLimits {
  const pairs = rateLimitStore.create("sign-in:pair", ATTEMPTS_PER_PAIR);
  const addresses = rateLimitStore.create("sign-in:address", ATTEMPTS_PER_ADDRESS);
  const accounts = rateLimitStore.create("sign-in:account", ATTEMPTS_PER_ACCOUNT);

  return {
    async attempt(address, username) {
      if (!isOn) return 0;
      const network = networkKeyOf(address);
      const account = accountKeyOf(username);
      // First, and without counting: otherwise one address could create counters for any number of names.
      const wait = await secondsUntilOpen(addresses, network);
      if (wait) return wait;
      // In this order: an attempt that is rejected for its pair doesn't count against users who share the rest.
      const counters: [RateLimiterAbstract, string][] = [
        [pairs, `${network} ${account}`],
        [addresses, network],
        [accounts, account],
      ];
      for (const [limiter, key] of counters) {
        const seconds = await count(limiter, key);
        if (seconds) return seconds;
      }
      return 0;
    },

    async succeeded(address, username) {
      if (!isOn) return;
      const network = networkKeyOf(address);
      const account = accountKeyOf(username);
      await pairs.delete(`${network} ${account}`);
      await addresses.reward(network);
      await accounts.reward(account);
    },
  };
}

/** Returns the form in which a username is unique, so spelling it differently gains no attempts. Invalid names share one. */
function accountKeyOf(username: string): string {
  if (validateUsername(username)) return "";
  return username.normalize("NFKC").toLowerCase();
}
