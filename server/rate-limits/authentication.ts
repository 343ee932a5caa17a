import { count, countNetworks } from "./counters.ts";
import { createOAuthLimits, type OAuthLimits } from "./oauth.ts";
import { createSignInLimits, type SignInLimits } from "./sign-in.ts";
import type { RateLimitStore } from "./store.ts";

// Three of a million codes are valid at a time, so guessing succeeds with a probability of 0.3% per day.
const SECOND_FACTOR_ATTEMPTS = 10;
const SECOND_FACTOR_WINDOW_S = 15 * 60;

/**
 * Limits the codes of authenticator apps per account. Only someone who knows the password can enter any. The limits don't
 * apply to known devices.
 */
type SecondFactorLimits = {
  /** Counts an attempt before it is made, so concurrent attempts count. Returns the seconds to wait, or 0. */
  attempt(userId: string): Promise<number>;
  /** Forgets the attempts of an account after one succeeds. */
  succeeded(userId: string): Promise<void>;
};

// Each costs a password hash, and stores rows.
const REGISTRATIONS_PER_NETWORK = 10;
// Each stores a row, and may send an email.
const RESETS_PER_NETWORK = 10;
const REFRESHES_PER_NETWORK = 300;
const PASSKEYS_PER_NETWORK = 100;
const RECOVERY_CODES_PER_NETWORK = 50;
// The same as the API's limit on the Growth plan.
const CHANGES_PER_USER = 600;

/**
 * Limits on guessing, and on requests that no plan limits. Each resets after a minute. Attempts
 * to sign in that succeed don't count.
 */
export type AuthenticationLimits = OAuthLimits & {
  signIn: SignInLimits;
  secondFactor: SecondFactorLimits;
  /** Counts a request of a kind from an address. Returns the seconds to wait, or 0. */
  visit(
    kind: "registration" | "reset" | "refresh" | "passkey" | "recoveryCode",
    address: string,
  ): Promise<number>;
  /** Counts a change that a user makes in the dashboard. Returns the seconds to wait, or 0. */
  change(userId: string): Promise<number>;
};

/** @param isOn false turns all limits off, for tests and benchmarks */
export function createAuthenticationLimits(
  isOn: boolean,
  rateLimitStore: RateLimitStore,
): AuthenticationLimits {
  const changes = rateLimitStore.create("dashboard:changes", CHANGES_PER_USER);
  const visits = {
    passkey: rateLimitStore.create("passkey", PASSKEYS_PER_NETWORK),
    recoveryCode: rateLimitStore.create("recovery-code", RECOVERY_CODES_PER_NETWORK),
    registration: rateLimitStore.create("registration", REGISTRATIONS_PER_NETWORK),
    reset: rateLimitStore.create("reset", RESETS_PER_NETWORK),
    refresh: rateLimitStore.create("refresh", REFRESHES_PER_NETWORK),
  };

  return {
    ...createOAuthLimits(isOn, rateLimitStore),
    signIn: createSignInLimits(isOn, rateLimitStore),
    secondFactor: createSecondFactorLimits(isOn, rateLimitStore),
    visit: async (kind, address) => (isOn ? countNetworks(visits[kind], address) : 0),
    change: async (userId) => (isOn ? count(changes, userId) : 0),
  };
}

function createSecondFactorLimits(isOn: boolean, rateLimitStore: RateLimitStore): SecondFactorLimits {
  const accounts = rateLimitStore.create("second-factor", SECOND_FACTOR_ATTEMPTS, {
    seconds: SECOND_FACTOR_WINDOW_S,
  });
  return {
    attempt: async (userId) => (isOn ? count(accounts, userId) : 0),
    async succeeded(userId) {
      if (isOn) await accounts.delete(userId);
    },
  };
}
