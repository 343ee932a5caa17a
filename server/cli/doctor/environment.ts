import { setTimeout as sleep } from "node:timers/promises";
import { createMailer } from "../../mail/mailer.ts";
import { readDescriptorLimit } from "../../rate-limits/connections.ts";
import { publicUrlsOf } from "../../settings/public-urls.ts";
import { describeScope } from "../../settings/rate-limit-scope.ts";
import type { CommandContext } from "../command.ts";

// A code or an assertion of another process is refused if it seems to come from the future.
const MAX_SKEW_MS = 5_000;
const MIN_DESCRIPTORS = 4096;
const REDIS_MS = 3_000;

/** Finds a public service that isn't configured for production. */
export async function checkNodeEnv({ settings }: CommandContext): Promise<string> {
  if (settings.isProduction) return "NODE_ENV=production";
  const { base } = publicUrlsOf(settings, settings.PORT);
  if (base.startsWith("https:"))
    throw new Error(
      "NODE_ENV is not set to production, so the first start creates a demo organization with a password that is printed. Set NODE_ENV=production",
    );
  return "for development; set NODE_ENV=production before others use it";
}

/** Connects to Redis, if it is used, and says which processes share the rate limits. */
export async function checkRateLimits({ settings }: CommandContext): Promise<string> {
  if (settings.REDIS_URL) await pingRedis(settings.REDIS_URL);
  return describeScope(settings);
}

async function pingRedis(url: string): Promise<void> {
  const { Redis } = await import("ioredis");
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: REDIS_MS });
  let reason = "";
  redis.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    reason = code ?? message;
  });
  try {
    const late = sleep(REDIS_MS, "timed out", { ref: false });
    const answer = await Promise.race([redis.connect().then(() => redis.ping()), late]);
    if (answer === "timed out") throw new Error(answer);
  } catch (error) {
    throw new Error(
      `REDIS_URL: cannot connect to ${new URL(url).host} (${reason || (error as Error).message}). Until Redis is available, each process counts for itself`,
    );
  } finally {
    redis.disconnect();
  }
}

/** Compares the clock of this machine with that of the database server. */
export async function checkClock({ storage }: CommandContext): Promise<string> {
  const before = Date.now();
  const theirs = await storage.databaseTime();
  return describeSkew(theirs - (before + Date.now()) / 2, "the database server");
}

/**
 * Describes how far a clock is ahead.
 * @param ms how far, negative if it is behind
 * @throws Error if it is too far off
 */
export function describeSkew(ms: number, whose: string): string {
  const seconds = `${(Math.abs(ms) / 1000).toFixed(1)} s`;
  if (Math.abs(ms) <= MAX_SKEW_MS) return `${seconds} from that of ${whose}`;
  throw new Error(
    `${seconds} ${ms < 0 ? "ahead of" : "behind"} that of ${whose}: synchronize the clocks with NTP`,
  );
}

/** Reads how many connections a process that is started here may have. */
export async function checkDescriptors(): Promise<string> {
  const limit = readDescriptorLimit();
  if (limit === undefined) return "unlimited, or unknown on this system";
  if (limit < MIN_DESCRIPTORS)
    throw new Error(
      `at most ${limit} file descriptors, one for each connection: raise the limit to 65536 (ulimit -n, or LimitNOFILE of systemd)`,
    );
  return `up to ${limit} per process`;
}

/** Connects to the SMTP server and signs in, but sends nothing. */
export async function checkMail({ settings }: CommandContext): Promise<string> {
  const mailer = createMailer(settings);
  try {
    await mailer?.verify();
    return `connected, sender ${settings.SMTP_FROM}`;
  } finally {
    mailer?.close();
  }
}
