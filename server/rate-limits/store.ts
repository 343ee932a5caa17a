import cluster from "node:cluster";
import type { Redis } from "ioredis";
import { RateLimiterMemory, RateLimiterRedis } from "rate-limiter-flexible";
import type { CallCounter, Count } from "../../resources/access/rate-limit.ts";
import type { Log } from "../log.ts";
import { createExactCounter, createExchange, type Limits } from "./cluster.ts";
import { type Counter, type SilentCounter, toSeconds } from "./counters.ts";
import { hostKeyOf } from "./ip-key.ts";

const WINDOW_S = 60;
// Rate limits must not delay requests, but a busy process that reads late must not count as an outage.
const TIMEOUT_MS = 500;

/** `isHot`: workers may learn of each other's counts a little later, for speed. */
type CounterOptions = { seconds?: number; isHot?: boolean };

export type RateLimitStore = {
  /** `name` is unique. The counter doesn't enforce `points`. */
  create(name: string, points: number, options?: CounterOptions): Counter;
  close(): void;
};
type SilentStore = { create(limits: Limits, isHot: boolean): SilentCounter; close(): void };

/** Creates the store. While Redis is unavailable, each process counts for itself; this is logged once per outage. */
export async function createRateLimitStore(
  redisUrl: string | undefined,
  log: Log,
  onRefused: (limit: string) => void = () => {},
): Promise<RateLimitStore> {
  const { create, close } = await openStore(redisUrl, log);
  return {
    close,
    create(name, points, { seconds = WINDOW_S, isHot = false } = {}) {
      const counter = create({ keyPrefix: name, points, duration: seconds }, isHot);
      return Object.assign(counter, { refused: () => onRefused(name) });
    },
  };
}

async function openStore(redisUrl: string | undefined, log: Log): Promise<SilentStore> {
  if (redisUrl) return createRedisStore(await connect(redisUrl, log));
  if (cluster.isWorker) return createClusterStore();
  return { create: (limits) => new RateLimiterMemory(limits), close() {} };
}

function createClusterStore(): SilentStore {
  const exchange = createExchange();
  return {
    create: (limits, isHot) => (isHot ? exchange.create(limits) : createExactCounter(limits)),
    close: exchange.close,
  };
}

function createRedisStore(redis: Redis): SilentStore {
  return {
    create: (limits) =>
      new RateLimiterRedis({
        ...limits,
        storeClient: redis,
        keyPrefix: `linkgate:${limits.keyPrefix}`,
        insuranceLimiter: new RateLimiterMemory(limits),
        rejectIfRedisNotReady: true,
      }),
    close: () => redis.disconnect(),
  };
}

/** Resolves after the first attempt, successful or not. */
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
