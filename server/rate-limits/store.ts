import type { Redis } from "ioredis";
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis } from "rate-limiter-flexible";
import type { Log } from "../log.ts";

const WINDOW_S = 60;
// If Redis takes longer, it counts as unavailable: rate limits must not delay requests.
const TIMEOUT_MS = 250;

/** Creates counters with a window of one minute, in this process or shared through Redis. */
export type RateLimitStore = {
  /** @param name unique; @param points the limit, which the counter itself does not enforce */
  create(name: string, points: number): RateLimiterAbstract;
  close(): void;
};

/** While Redis is unavailable, each process counts for itself; this is logged once per outage. */
export async function createRateLimitStore(redisUrl: string | undefined, log: Log): Promise<RateLimitStore> {
  const inMemory = (points: number) => new RateLimiterMemory({ points, duration: WINDOW_S });
  if (!redisUrl) return { create: (_name, points) => inMemory(points), close() {} };

  const redis = await connect(redisUrl, log);
  return {
    create: (name, points) =>
      new RateLimiterRedis({
        storeClient: redis,
        keyPrefix: `linkgate:${name}`,
        points,
        duration: WINDOW_S,
        insuranceLimiter: inMemory(points),
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
    commandTimeout: TIMEOUT_MS,
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
