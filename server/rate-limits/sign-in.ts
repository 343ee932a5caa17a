import { isPossibleUsername } from "../credentials/usernames.ts";
import { count, countNetworks, rewardNetworks, secondsUntilNetworksOpen } from "./counters.ts";
import { networkKeyOf } from "./ip-key.ts";
import type { RateLimitStore } from "./store.ts";

// Users mistype a few times; guessing a password takes thousands of attempts.
const ATTEMPTS_PER_PAIR = 5;
const ATTEMPTS_PER_NETWORK = 50;

/**
 * Limits on password attempts per network, and per pair of network and username. They don't apply to known devices. What
 * limits guesses from many networks at one username is counted in the database: `SignInFailureStore`.
 */
export type SignInLimits = {
  /** Counts an attempt before it is made, so concurrent attempts count. Returns the seconds to wait, or 0. */
  attempt(address: string, username: string): Promise<number>;
  /** Uncounts a successful attempt. */
  succeeded(address: string, username: string): Promise<void>;
};

export function createSignInLimits(isOn: boolean, rateLimitStore: RateLimitStore): SignInLimits {
  const pairs = rateLimitStore.create("sign-in:pair", ATTEMPTS_PER_PAIR);
  const networks = rateLimitStore.create("sign-in:address", ATTEMPTS_PER_NETWORK);

  return {
    async attempt(address, username) {
      if (!isOn) return 0;
      // First, and without counting: otherwise one network could create counters for any number of names.
      const wait = await secondsUntilNetworksOpen(networks, address);
      if (wait) return wait;
      // In this order: an attempt that is rejected for its pair doesn't count against users who share the network.
      return (await count(pairs, pairKeyOf(address, username))) || countNetworks(networks, address);
    },

    async succeeded(address, username) {
      if (!isOn) return;
      await pairs.delete(pairKeyOf(address, username));
      await rewardNetworks(networks, address);
    },
  };
}

/** Contains the form in which a username is unique, so spelling it differently gains no attempts. Invalid names share one. */
function pairKeyOf(address: string, username: string): string {
  const account = isPossibleUsername(username) ? username.normalize("NFKC").toLowerCase() : "";
  return `${networkKeyOf(address)} ${account}`;
}
