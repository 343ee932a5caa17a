import { normalizeUsername } from "../../adapters/accounts/sign-in-failures.ts";
import { isPossibleUsername } from "../credentials/names.ts";
import { networkKeyOf } from "../http/client-ip.ts";
import { createOAuthLimits } from "./oauth.ts";
import {
  type Counter,
  count,
  countNetworks,
  type RateLimitStore,
  rewardNetworks,
  secondsUntilNetworksOpen,
} from "./store.ts";

// Users mistype a few times; guessing a password takes thousands of attempts.
const ATTEMPTS_PER_PAIR = 5;
const ATTEMPTS_PER_NETWORK = 50;
// Three of a million codes are valid at a time, so guessing succeeds with a probability of 0.3% per day.
const SECOND_FACTOR_ATTEMPTS = 10;
const SECOND_FACTOR_WINDOW_S = 15 * 60;
// Of 25 billion user codes, a thousand may be valid at a time: guessing one in a year would take ten thousand users.
const USER_CODES = 20;
const USER_CODE_WINDOW_S = 15 * 60;
const VISITS_PER_NETWORK = {
  // Each attempt counts, also a refused one. A successful one costs a password hash, and stores rows.
  registration: 10,
  // Each stores a row, and may send an email.
  reset: 10,
  refresh: 300,
  passkey: 100,
  "recovery-code": 50,
};
// The same as the API's limit on the Growth plan.
const CHANGES_PER_USER = 600;

/** Functions return the seconds to wait, or 0. Known devices are exempt from the limits. */
export type AuthenticationLimits = ReturnType<typeof createAuthenticationLimits>;
export type SignInLimits = AuthenticationLimits["signIn"];

export function createAuthenticationLimits(store: RateLimitStore) {
  const changes = store.create("dashboard:changes", CHANGES_PER_USER);
  const visits = Object.fromEntries(
    Object.entries(VISITS_PER_NETWORK).map(([kind, points]) => [kind, store.create(kind, points)]),
  ) as Record<keyof typeof VISITS_PER_NETWORK, Counter>;
  const userCodes = store.create("device:code", USER_CODES, { seconds: USER_CODE_WINDOW_S });
  const codes = store.create("second-factor", SECOND_FACTOR_ATTEMPTS, { seconds: SECOND_FACTOR_WINDOW_S });
  return {
    ...createOAuthLimits(store),
    signIn: createSignInLimits(store),
    /** Only someone who knows the password can enter any code. */
    secondFactor: {
      /** Counts before the attempt, so concurrent attempts count. */
      attempt: (userId: string) => count(codes, userId),
      async succeeded(userId: string): Promise<void> {
        await codes.delete(userId);
      },
    },
    userCode: (userId: string) => count(userCodes, userId),
    visit: (kind: keyof typeof visits, address: string) => countNetworks(visits[kind], address),
    change: (userId: string) => count(changes, userId),
  };
}

/** The database counts guesses from many networks: `SignInFailureStore`. */
function createSignInLimits(store: RateLimitStore) {
  const pairs = store.create("sign-in:pair", ATTEMPTS_PER_PAIR);
  const networks = store.create("sign-in:address", ATTEMPTS_PER_NETWORK);
  return {
    async attempt(address: string, username: string): Promise<number> {
      // First, and without counting: otherwise one network could create counters for any number of names.
      const wait = await secondsUntilNetworksOpen(networks, address);
      if (wait) return wait;
      // In this order: an attempt that is rejected for its pair doesn't count against users who share the network.
      return (await count(pairs, pairKeyOf(address, username))) || countNetworks(networks, address);
    },
    async succeeded(address: string, username: string): Promise<void> {
      await pairs.delete(pairKeyOf(address, username));
      await rewardNetworks(networks, address);
    },
  };
}

/** The form in which a username is unique, so spelling it differently gains no attempts. Invalid names share one. */
function pairKeyOf(address: string, username: string): string {
  const account = isPossibleUsername(username) ? normalizeUsername(username) : "";
  return `${networkKeyOf(address)} ${account}`;
}
