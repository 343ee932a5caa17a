import type { SignInFailureStore } from "../../adapters/accounts/sign-in-failures.ts";
import { RETRY_AFTER_S, retryLater } from "../../resources/http/problem.ts";
import type { LinkPasswords } from "../../resources/links/types.ts";
import { PasswordQueueFull, type Passwords } from "../credentials/passwords.ts";
import { networkKeyOf, siteKeyOf } from "../http/client-ip.ts";
import {
  countNetworks,
  describeWait,
  type RateLimitStore,
  rewardNetworks,
  toSeconds,
} from "../rate-limits/store.ts";

// As for sign-ins. Of all links: each first attempt stores a row.
const ATTEMPTS_PER_NETWORK = 50;

type Options = {
  passwords: Passwords;
  signInFailures: Pick<SignInFailureStore, "attemptLink" | "resetLink">;
  rateLimitStore: RateLimitStore;
};

/** Hashes passwords of links in the queue of those of users, and limits guesses as those of sign-ins. */
export function createLinkPasswords({ passwords, signInFailures, rateLimitStore }: Options): LinkPasswords {
  const { isOn } = rateLimitStore;
  const networks = rateLimitStore.create("link-password", ATTEMPTS_PER_NETWORK);

  async function admit(linkId: string, address: string): Promise<void> {
    enforceWait(await countNetworks(networks, address));
    const admission = await signInFailures.attemptLink(linkId, networkKeyOf(address));
    if (admission.outcome === "delayed") enforceWait(toSeconds(admission.waitMs));
  }

  return {
    hash: (password, organizationId) =>
      passwords.hash(password, { network: organizationId }).catch(throwUnavailable),

    async verify(hash, password, { linkId, address }) {
      if (isOn) await admit(linkId, address);
      const from = { network: siteKeyOf(address) };
      const matches = await passwords.verify(hash, password, from).catch(throwUnavailable);
      if (matches && isOn) {
        await signInFailures.resetLink(linkId, networkKeyOf(address));
        await rewardNetworks(networks, address);
      }
      return matches;
    },
  };
}

function enforceWait(seconds: number): void {
  const detail = `Too many wrong passwords. Try again in ${describeWait(seconds)}.`;
  if (seconds > 0) throw retryLater(429, "rate_limited", detail, seconds);
}

/** The API has another code for it than the sign-in. */
function throwUnavailable(error: unknown): never {
  if (!(error instanceof PasswordQueueFull)) throw error;
  throw retryLater(503, "temporarily_unavailable", error.message, RETRY_AFTER_S);
}
