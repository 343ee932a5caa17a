import { Redis } from "ioredis";
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis } from "rate-limiter-flexible";
import type { Log } from "./log.ts";

const WINDOW_S = 60;
// Whoever is slower to count is away: a limit must not hold up what it limits.
const TIMEOUT_MS = 250;

/** Counters of a minute: of this process alone, or shared through Redis. */
export type Counters = {
  /** @param name unique; @param points what is allowed, which the counter itself does not enforce */
  create(name: string, points: number): RateLimiterAbstract;
  close(): void;
};

/** Makes counters. While Redis is away each process counts by itself; that is logged once. */
export async function createCounters(redisUrl: string | undefined, log: Log): Promise<Counters> {
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

/** Resolves when Redis answers or does not: it is tried again for as long as the process lives. */
async function connect(url: string, log: Log): Promise<Redis> {
  const redis = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 1000,
    commandTimeout: TIMEOUT_MS,
  });
  let isAway = false;
  redis.on("error", (error) => {
    if (!isAway) log.error({ err: error }, "Redis is away: every process counts calls by itself");
    isAway = true;
  });
  redis.on("ready", () => {
    if (isAway) log.info("Redis is back");
    isAway = false;
  });
  await redis.connect().catch(() => {});
  return redis;
}

/** Seconds until a counter begins again. */
export function toSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}
