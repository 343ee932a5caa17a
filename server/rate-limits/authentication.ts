import { count } from "./counters.ts";
import { networkKeyOf } from "./ip-key.ts";
import { createOAuthLimits, type OAuthLimits } from "./oauth.ts";
import { createSignInLimits, type SignInLimits } from "./sign-in.ts";
import type { RateLimitStore } from "./store.ts";

// Each costs a password hash, and stores rows.
const REGISTRATIONS_PER_ADDRESS = 10;
const REFRESHES_PER_ADDRESS = 300;
// The same as the API's limit on the Growth plan.
const CHANGES_PER_USER = 600;

/**
 * Limits on guessing, and on requests that no plan limits. Nothing is locked: each limit resets after a minute. Attempts
 * to sign in that succeed don't count.
 */
export type AuthenticationLimits = OAuthLimits & {
  signIn: SignInLimits;
  /** Counts a registration or refresh from an address. Returns the seconds to wait, or 0. */
  visit(kind: "registration" | "refresh", address: string): Promise<number>;
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
    registration: rateLimitStore.create("registration", REGISTRATIONS_PER_ADDRESS),
    refresh: rateLimitStore.create("refresh", REFRESHES_PER_ADDRESS),
  };

  return {
    ...createOAuthLimits(isOn, rateLimitStore),
    signIn: createSignInLimits(isOn, rateLimitStore),
    visit: async (kind, address) => (isOn ? count(visits[kind], networkKeyOf(address)) : 0),
    change: async (userId) => (isOn ? count(changes, userId) : 0),
  };
}
