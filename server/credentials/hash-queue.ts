import pLimit from "p-limit";
import { UNAVAILABLE } from "../../resources/http/unavailable.ts";

// Each hash takes 19 MiB and one core. More concurrency would only make every request slower.
const CONCURRENCY = 2;
// Users on known devices have a queue of their own, which a flood from elsewhere can't fill.
const CONCURRENCY_OF_KNOWN_DEVICES = 1;
const MAX_WAITING = 50;
// Less than half of the places of each queue: one network can't take them all.
const MAX_PER_NETWORK = 20;

/** Too many passwords are being hashed; try again later. */
export class PasswordQueueFull extends Error {
  override readonly name = "PasswordQueueFull";
  readonly code = UNAVAILABLE;
  constructor() {
    super("too many passwords are being hashed");
  }
}

/** Where a password comes from: a network, and whether from a known device of its user. */
export type Origin = { network: string; isKnownDevice?: boolean };

/** Runs work when it is its turn. @throws PasswordQueueFull */
export type HashQueue = <T>(work: () => Promise<T>, from?: Origin) => Promise<T>;

/** Creates the queues of a process. @param isLimited false lets one network take every place, as `RATE_LIMIT=off` does */
export function createHashQueue(isLimited = true): HashQueue {
  const ofAll = { limit: pLimit(CONCURRENCY), byNetwork: new Map<string, number>() };
  const ofKnownDevices = {
    limit: pLimit(CONCURRENCY_OF_KNOWN_DEVICES),
    byNetwork: new Map<string, number>(),
  };

  return async (work, from) => {
    const { limit, byNetwork } = from?.isKnownDevice ? ofKnownDevices : ofAll;
    if (limit.pendingCount >= MAX_WAITING) throw new PasswordQueueFull();
    if (!from || !isLimited) return limit(work);
    const { network } = from;
    const count = byNetwork.get(network) ?? 0;
    if (count >= MAX_PER_NETWORK) throw new PasswordQueueFull();
    byNetwork.set(network, count + 1);
    try {
      return await limit(work);
    } finally {
      const others = (byNetwork.get(network) as number) - 1;
      if (others > 0) byNetwork.set(network, others);
      else byNetwork.delete(network);
    }
  };
}
