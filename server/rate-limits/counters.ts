import type { RateLimiterAbstract } from "rate-limiter-flexible";
import { type Network, networkKeyOf, networksOf } from "./ip-key.ts";

export type SilentCounter = Pick<RateLimiterAbstract, "points" | "penalty" | "reward" | "get" | "delete">;

export type Counter = SilentCounter & { refused(): void };

/** Returns the seconds to wait if one more exceeds the limit, or 0. */
export async function count(counter: Counter, key: string): Promise<number> {
  const { consumedPoints, msBeforeNext } = await counter.penalty(key);
  return refuse(counter, consumedPoints > counter.points ? toSeconds(msBeforeNext) : 0);
}

/** Returns the seconds to wait, or 0; counts nothing. */
export async function secondsUntilOpen(counter: Counter, key: string): Promise<number> {
  return refuse(counter, await waitFor(counter, key));
}

function refuse(counter: Counter, seconds: number): number {
  if (seconds > 0) counter.refused();
  return seconds;
}

async function waitFor(counter: Counter, key: string, share = 1): Promise<number> {
  const state = await counter.get(key);
  if (!state || state.msBeforeNext <= 0 || state.consumedPoints < counter.points * share) return 0;
  return toSeconds(state.msBeforeNext);
}

/** Returns the seconds to wait, or 0. An address can't use up the limit of a larger network than its own. */
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

/** Returns the seconds to wait, or 0; counts nothing. */
export async function secondsUntilNetworksOpen(counter: Counter, address: string): Promise<number> {
  const wait = ({ key, share }: Network) => waitFor(counter, key, share);
  return refuse(counter, Math.max(...(await Promise.all(networksOf(address).map(wait)))));
}

export async function rewardNetworks(counter: Counter, address: string): Promise<void> {
  await Promise.all(networksOf(address).map(({ key }) => counter.reward(key)));
}

/** Converts to whole seconds for `Retry-After`, at least 1. */
export function toSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** Formats seconds as "30 seconds" or "15 minutes". */
export function describeWait(seconds: number): string {
  const [amount, unit] = seconds <= 60 ? [seconds, "second"] : [Math.ceil(seconds / 60), "minute"];
  return `${amount} ${unit}${amount === 1 ? "" : "s"}`;
}
