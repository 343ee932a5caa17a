import { count, countNetworks } from "./counters.ts";
import { createOAuthLimits, type OAuthLimits } from "./oauth.ts";
import { createSecondFactorLimits, type SecondFactorLimits } from "./second-factor.ts";
import { createSignInLimits, type SignInLimits } from "./sign-in.ts";
import type { RateLimitStore } from "./store.ts";

// Each costs a password hash, and stores rows.
const REGISTRATIONS_PER_NETWORK = 10;
// Each stores a row, and may send an email.
const RESETS_PER_NETWORK = 10;
const REFRESHES_PER_NETWORK = 300;
const PASSKEYS_PER_NETWORK = 100;
// The same as the API's limit on the Growth plan.
const CHANGES_PER_USER = 600;

/**
 * Limits on guessing, and on requests that no plan limits. Each resets after a minute. Attempts
 * to sign in that succeed don't count.
 */
export type AuthenticationLimits = OAuthLimits & {
  signIn: SignInLimits;
  secondFactor: SecondFactorLimits;
  /** Counts a registration, a reset request, a refresh or a passkey from an address. Returns the seconds to wait, or 0. */
  visit(kind: "registration" | "reset" | "refresh" | "passkey", address: string): Promise<number>;
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
