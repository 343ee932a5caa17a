import cluster from "node:cluster";
import type { Redis } from "ioredis";
import type { Middleware } from "koa";
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import type { CallCounter, Count } from "../../resources/access/rate-limit.ts";
import { retryLater } from "../../resources/http/problem.ts";
import type { CountTest } from "../../resources/webhooks/service.ts";
import { hostKeyOf, type Network, networkKeyOf, networksOf } from "../http/client-ip.ts";
import type { Settings } from "../settings/config.ts";
import {
  createApproximateCounters,
  createExactCounter,
  type Limits,
  type Report,
  type SilentCounter,
  withFallback,
} from "./cluster.ts";

const WINDOW_S = 60;
// Rate limits must not delay requests, but a busy process that reads late must not count as an outage.
const TIMEOUT_MS = 500;

/** `isHot`: workers may learn of each other's counts a little later, for speed. */
type CounterOptions = { seconds?: number; isHot?: boolean };

export type Counter = SilentCounter & { refused(): void };

export type RateLimitStore = {
  /** Otherwise, its counters count nothing. */
  isOn: boolean;
  /** `name` is unique. The counter doesn't enforce `points`. */
  create(name: string, points: number, options?: CounterOptions): Counter;
  close(): void;
};
type SilentStore = { create(limits: Limits, isHot: boolean): SilentCounter; close(): void };

/** Creates the store. While Redis is unavailable, each process counts for itself; this is logged once per outage. */
export async function createRateLimitStore(
  settings: Pick<Settings, "RATE_LIMIT" | "REDIS_URL">,
  reportRedis?: Report,
  onRefused: (limit: string) => void = () => {},
): Promise<RateLimitStore> {
  const { create, close } = await openStore(settings, reportRedis);
  return {
    isOn: settings.RATE_LIMIT,
    close,
    create(name, points, { seconds = WINDOW_S, isHot = false } = {}) {
      const counter = create({ keyPrefix: name, points, duration: seconds }, isHot);
      return Object.assign(counter, { refused: () => onRefused(name) });
    },
  };
}

async function openStore(
  { RATE_LIMIT, REDIS_URL }: Pick<Settings, "RATE_LIMIT" | "REDIS_URL">,
  report?: Report,
): Promise<SilentStore> {
  if (!RATE_LIMIT) return OFF;
  if (REDIS_URL) return createRedisStore(await connect(REDIS_URL, report), report);
  if (cluster.isWorker) return createClusterStore();
  return { create: (limits) => new RateLimiterMemory(limits), close() {} };
}

const uncounted = async () => new RateLimiterRes(0, 0, 0, false);
const OFF: SilentStore = {
  create: ({ points }) => ({
    points,
    penalty: uncounted,
    reward: uncounted,
    get: uncounted,
    delete: async () => true,
  }),
  close() {},
};

function createClusterStore(): SilentStore {
  const approximate = createApproximateCounters();
  return {
    create: (limits, isHot) => (isHot ? approximate.create(limits) : createExactCounter(limits)),
    close: approximate.close,
  };
}

function createRedisStore(redis: Redis, report?: Report): SilentStore {
  return {
    create: (limits) => {
      const keyPrefix = `linkgate:${limits.keyPrefix}`;
      const common = { ...limits, storeClient: redis, keyPrefix, rejectIfRedisNotReady: true };
      return withFallback(new RateLimiterRedis(common), limits, report);
    },
    close: () => redis.disconnect(),
  };
}

/** Resolves after the first attempt, successful or not. */
async function connect(url: string, report: Report = () => {}): Promise<Redis> {
  const { Redis } = await import("ioredis");
  const redis = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 1000,
    socketTimeout: TIMEOUT_MS,
  });
  redis.on("error", report);
  await redis.connect().catch(() => {});
  return redis;
}

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

export function createCallCounter(rateLimitStore: RateLimitStore): CallCounter {
  // The limit depends on the plan and is checked by the caller, so these only count.
  const organizations = rateLimitStore.create("calls:organization", 0, { isHot: true });
  const addresses = rateLimitStore.create("calls:address", 0, { isHot: true });
  async function add(limiter: typeof addresses, key: string, calls = 1): Promise<Count> {
    const { consumedPoints, msBeforeNext } = await limiter.penalty(key, calls);
    return { calls: consumedPoints, seconds: toSeconds(msBeforeNext) };
  }
  return {
    ofOrganization: (id, calls) => add(organizations, id, calls),
    ofAddress: (address) => add(addresses, hostKeyOf(address)),
    refused: (limit) => (limit === "organization" ? organizations : addresses).refused(),
  };
}

// All webhooks that a plan allows can be created in one go, and some be tested again.
const PER_ORGANIZATION = 30;
const ORGANIZATION_S = 10 * 60;
const PER_MINUTE = 60;

/** Test events go to endpoints that never accepted one, which may belong to a third party. */
export function createTestCounter(store: RateLimitStore): CountTest {
  const organizations = store.create("webhook-tests:organization", PER_ORGANIZATION, {
    seconds: ORGANIZATION_S,
  });
  const hosts = store.create("webhook-tests:host", PER_MINUTE);
  return async (organizationId, url) => {
    // Not the port: all of them may be one server.
    const { hostname } = new URL(url);
    return (await count(organizations, `${organizationId} ${hostname}`)) || count(hosts, hostname);
  };
}

// Half of the calls of the API: a page takes longer, and an office behind one address opens about a hundred a minute.
const REQUESTS_PER_ADDRESS = 3000;

/** Limits the requests for pages, before anything of them is read or looked up. Other limits follow it. */
export function limitPages(store: RateLimitStore): Middleware[] {
  if (!store.isOn) return [];
  const requests = store.create("pages", REQUESTS_PER_ADDRESS, { isHot: true });
  return [
    async function limitPage(ctx, next) {
      const seconds = await count(requests, hostKeyOf(ctx.ip));
      if (seconds === 0) return next();
      const detail = `Too many requests. Try again in ${describeWait(seconds)}.`;
      throw retryLater(429, "too_many_requests", detail, seconds);
    },
  ];
}

/** The home page, the documentation, the dashboard, and the sign-in. */
export const PAGE_SEGMENTS = ["", "auth", "dashboard", "docs", "llms.txt"];
