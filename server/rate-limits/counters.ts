import type { Counter } from "./counter.ts";
import { type Network, networkKeyOf, networksOf } from "./ip-key.ts";
import { toSeconds } from "./store.ts";

/** Counts one more; returns the seconds to wait if that exceeds the limit, or 0. */
export async function count(counter: Counter, key: string): Promise<number> {
  const { consumedPoints, msBeforeNext } = await counter.penalty(key);
  return refuse(counter, consumedPoints > counter.points ? toSeconds(msBeforeNext) : 0);
}

/** Returns the seconds to wait if the limit is reached, or 0; counts nothing. */
export async function secondsUntilOpen(counter: Counter, key: string): Promise<number> {
  return refuse(counter, await waitFor(counter, key));
}

/** Reports a refusal if there are seconds to wait, which it returns. */
function refuse(counter: Counter, seconds: number): number {
  if (seconds > 0) counter.refused();
  return seconds;
}

async function waitFor(counter: Counter, key: string, share = 1): Promise<number> {
  const state = await counter.get(key);
  if (!state || state.msBeforeNext <= 0 || state.consumedPoints < counter.points * share) return 0;
  return toSeconds(state.msBeforeNext);
}

/**
 * Counts one more for an address, in each network that it is in. Returns the seconds to wait, or 0. A request from a
 * network that has reached its limit isn't counted, so it can't use up the limit of the next larger network.
 */
export async function countNetworks(counter: Counter, address: string): Promise<number> {
  const networks = networksOf(address);
  if (networks.length === 1) return count(counter, networkKeyOf(address));
  const seconds = await secondsUntilNetworksOpen(counter, address);
  if (seconds) return seconds;
  const counts = await Promise.all(
    networks.map(async ({ key, share }) => {
      const { consumedPoints, msBeforeNext } = await counter.penalty(key);
      return consumedPoints > counter.points * share ? toSeconds(msBeforeNext) : 0;
    }),
  );
  return refuse(counter, Math.max(...counts));
}

/** Returns the seconds to wait if one of the networks of an address has reached its limit, or 0; counts nothing. */
export async function secondsUntilNetworksOpen(counter: Counter, address: string): Promise<number> {
  const wait = ({ key, share }: Network) => waitFor(counter, key, share);
  return refuse(counter, Math.max(...(await Promise.all(networksOf(address).map(wait)))));
}

/** Uncounts one in each network that an address is in. */
export async function rewardNetworks(counter: Counter, address: string): Promise<void> {
  await Promise.all(networksOf(address).map(({ key }) => counter.reward(key)));
}
