import cluster from "node:cluster";
import {
  type RateLimiterAbstract,
  RateLimiterCluster,
  RateLimiterClusterMaster,
  RateLimiterMemory,
} from "rate-limiter-flexible";

// If the primary process takes longer, the worker counts for itself: limits must not delay requests.
const TIMEOUT_MS = 250;
// Far below the windows, and one message per worker and interval at most.
const SHARE_MS = 100;
const CHANNEL = "linkgate:counts";

type Counts = { channel: typeof CHANNEL; counts: Record<string, Record<string, number>> };

export function shareCounters(): void {
  new RateLimiterClusterMaster();
  cluster.on("message", (sender, message) => {
    if (!isCounts(message)) return;
    for (const worker of Object.values(cluster.workers ?? {}))
      if (worker && worker.id !== sender.id && worker.isConnected()) worker.send(message);
  });
}

export type SilentCounter = Pick<RateLimiterAbstract, "points" | "penalty" | "reward" | "get" | "delete">;

/** `duration` is in seconds. */
export type Limits = { keyPrefix: string; points: number; duration: number };

/** Creates a counter of all workers of this machine. Each count asks the primary process, so it is exact. */
export function createExactCounter(options: Limits): SilentCounter {
  return withFallback(new RateLimiterCluster({ ...options, timeoutMs: TIMEOUT_MS }), options);
}

/** Takes the error of an operation, or nothing if it succeeded. */
export type Report = (error?: unknown) => void;
const ignore: Report = () => {};

/** Creates a counter that counts for itself what the shared one can't. */
export function withFallback(shared: SilentCounter, options: Limits, report: Report = ignore): SilentCounter {
  const own = new RateLimiterMemory(options);
  async function either<T>(count: (counter: SilentCounter) => Promise<T>, succeeded = report): Promise<T> {
    try {
      const counted = await count(shared);
      succeeded();
      return counted;
    } catch (error) {
      report(error);
      return count(own);
    }
  }
  return {
    points: options.points,
    penalty: (key, points) => either((counter) => counter.penalty(key, points)),
    reward: (key, points) => either((counter) => counter.reward(key, points)),
    get: (key) => either((counter) => counter.get(key), ignore), // Redis may be read-only or full
    delete: (key) => either((counter) => counter.delete(key)),
  };
}

/** Creates counters that add what other workers counted up to 100 ms ago, so counting never waits. */
export function createApproximateCounters(): { create(options: Limits): SilentCounter; close(): void } {
  const counters = new Map<string, RateLimiterMemory>();
  let counts: Counts["counts"] = {};

  const timer = setInterval(() => {
    if (Object.keys(counts).length === 0 || !process.connected) return;
    process.send?.({ channel: CHANNEL, counts } satisfies Counts);
    counts = {};
  }, SHARE_MS).unref();

  const receive = (message: unknown) => {
    if (!isCounts(message)) return;
    for (const [name, keys] of Object.entries(message.counts))
      for (const [key, points] of Object.entries(keys)) void counters.get(name)?.penalty(key, points);
  };
  process.on("message", receive);

  function count(name: string, key: string, points: number) {
    counts[name] ??= {};
    counts[name][key] = (counts[name][key] ?? 0) + points;
  }

  return {
    create(options) {
      const counter = new RateLimiterMemory(options);
      const name = options.keyPrefix;
      counters.set(name, counter);
      return {
        points: options.points,
        penalty(key, points = 1) {
          count(name, String(key), points);
          return counter.penalty(key, points);
        },
        reward(key, points = 1) {
          count(name, String(key), -points);
          return counter.reward(key, points);
        },
        get: (key) => counter.get(key),
        delete: (key) => counter.delete(key),
      };
    },
    close() {
      clearInterval(timer);
      process.off("message", receive);
    },
  };
}

function isCounts(message: unknown): message is Counts {
  return (message as Partial<Counts> | null)?.channel === CHANNEL;
}
