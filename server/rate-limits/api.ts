import type { CallCounter, Count } from "../../resources/access/call-counter.ts";
import { hostKeyOf } from "./ip-key.ts";
import { type RateLimitStore, toSeconds } from "./store.ts";

/** Creates the counter of API and MCP calls. */
export function createCallCounter(rateLimitStore: RateLimitStore): CallCounter {
  // The limit depends on the plan and is checked by the caller, so these only count.
  const organizations = rateLimitStore.create("calls:organization", 0, { isHot: true });
  const addresses = rateLimitStore.create("calls:address", 0, { isHot: true });

  async function count(limiter: typeof addresses, key: string, calls = 1): Promise<Count> {
    const { consumedPoints, msBeforeNext } = await limiter.penalty(key, calls);
    return { calls: consumedPoints, seconds: toSeconds(msBeforeNext) };
  }
  return {
    ofOrganization: (id, calls) => count(organizations, id, calls),
    ofAddress: (address) => count(addresses, hostKeyOf(address)),
    refused: (limit) => (limit === "organization" ? organizations : addresses).refused(),
  };
}
