import type { CallCounter, Count } from "../resources/ports.ts";
import { type Counters, toSeconds } from "./counters.ts";
import { hostOf } from "./network.ts";

/** Counts the calls of the API and MCP. */
export function createCallCounter(counters: Counters): CallCounter {
  // What is allowed depends on the plan: the counter only counts.
  const organizations = counters.create("calls:organization", 0);
  const addresses = counters.create("calls:address", 0);

  async function count(counter: typeof addresses, key: string, calls = 1): Promise<Count> {
    const { consumedPoints, msBeforeNext } = await counter.penalty(key, calls);
    return { calls: consumedPoints, seconds: toSeconds(msBeforeNext) };
  }
  return {
    ofOrganization: (id, calls) => count(organizations, id, calls),
    ofAddress: (address) => count(addresses, hostOf(address)),
  };
}
