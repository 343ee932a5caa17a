import cluster from "node:cluster";
import type { Redis } from "ioredis";
import { RateLimiterMemory, RateLimiterRedis } from "rate-limiter-flexible";
import type { Log } from "../log.ts";
import { createExactCounter, createExchange } from "./cluster.ts";
import type { Counter, SilentCounter } from "./counter.ts";

const WINDOW_S = 60;
// If Redis takes longer, it counts as unavailable, because rate limits must not delay requests. The connection is closed,
// so only the requests of that moment wait. Those that follow are counted by this process until Redis responds again. A
// busy process reads the response late, which must not count as an outage.
const TIMEOUT_MS = 500;

type CounterOptions = {
  /** The window. A minute by default. */
  seconds?: number;
  /** Whether it counts nearly every request, so that workers may learn of each other's counts a little later. */
  isHot?: boolean;
};

/** Creates counters, of this process, of the workers of this machine, or shared through Redis. */
export type RateLimitStore = {
  /** @param name unique; @param points the limit, which the counter itself does not enforce */
  create(name: string, points: number, options?: CounterOptions): Counter;
  close(): void;
};

/**
 * Creates the store of rate limits. While Redis is unavailable, each process counts for itself; this is logged once per
 * outage.
 * @param onRefused called with the name of the limit for each request that is refused
 */
export async function createRateLimitStore(
  redisUrl: string | undefined,
  log: Log,
  onRefused: (limit: string) => void = () => {},
): Promise<RateLimitStore> {
  const { create, close } = await openStore(redisUrl, log);
  return {
    close,
    create: (name, points, options) =>
      Object.assign(create(name, points, options), { refused: () => onRefused(name) }),
  };
}

/** A store whose counters don't report refusals. */
type SilentStore = {
  create(name: string, points: number, options?: CounterOptions): SilentCounter;
  close(): void;
};

async function openStore(redisUrl: string | undefined, log: Log): Promise<SilentStore> {
  if (redisUrl) return createRedisStore(await connect(redisUrl, log));
  if (cluster.isWorker) return createClusterStore();
  return {
    create: (_name, points, { seconds = WINDOW_S } = {}) =>
      new RateLimiterMemory({ points, duration: seconds }),
    close() {},
  };
}

function createClusterStore(): SilentStore {
  const exchange = createExchange();
  return {
    create(name, points, { seconds = WINDOW_S, isHot = false } = {}) {
      const options = { keyPrefix: name, points, duration: seconds };
      return isHot ? exchange.create(options) : createExactCounter(options);
    },
    close: exchange.close,
  };
}

function createRedisStore(redis: Redis): SilentStore {
  return {
    create: (name, points, { seconds = WINDOW_S } = {}) =>
      new RateLimiterRedis({
        storeClient: redis,
        keyPrefix: `linkgate:${name}`,
        points,
        duration: seconds,
        insuranceLimiter: new RateLimiterMemory({ points, duration: seconds }),
        rejectIfRedisNotReady: true,
      }),
    close: () => redis.disconnect(),
  };
}

/** Resolves after the first attempt, successful or not; the client keeps reconnecting. */
async function connect(url: string, log: Log): Promise<Redis> {
  const { Redis } = await import("ioredis");
  const redis = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 1000,
    socketTimeout: TIMEOUT_MS,
  });
  let isDown = false;
  redis.on("error", (error) => {
    if (!isDown)
      log.error({ err: error }, "Redis is unavailable; each process applies rate limits by itself");
    isDown = true;
  });
  redis.on("ready", () => {
    if (isDown) log.info("Redis is available again");
    isDown = false;
  });
  await redis.connect().catch(() => {});
  return redis;
}

/** Converts to whole seconds for `Retry-After`, at least 1. */
export function toSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** Describes seconds to wait, such as "30 seconds" or "15 minutes". */
export function describeWait(seconds: number): string {
  const [amount, unit] = seconds <= 60 ? [seconds, "second"] : [Math.ceil(seconds / 60), "minute"];
  return `${amount} ${unit}${amount === 1 ? "" : "s"}`;
}
