import type { Context, Next } from "koa";
import { retryLater } from "../http/problem.ts";
import { limitsOf } from "../plans.ts";
import type { ActiveToken } from "./introspect.ts";

/** The number of calls in the current minute, including this one, and the seconds until the next minute begins. */
export type Count = { calls: number; seconds: number };

type LimitName = "address" | "organization";

/** Counts calls of the API and MCP. Must never reject: if shared storage is unavailable, it counts per process. */
export type CallCounter = {
  ofAddress(address: string): Promise<Count>;
  ofOrganization(id: string, calls: number): Promise<Count>;
  refused(limit: LimitName): void;
};

const WINDOW_S = 60;
// Twice the limit of the largest plan: stops floods, but not two organizations that share an IP address.
const CALLS_PER_ADDRESS = 6000;

export type CallLimits = ReturnType<typeof createRateLimit>;

/** Creates the rate limits on calls of the API and MCP combined. @param counter if absent, nothing is limited */
export function createRateLimit(counter: CallCounter | undefined) {
  /** Sets the headers of draft-ietf-httpapi-ratelimit-headers-11 for the last limit counted. @throws Problem 429 */
  function enforce(ctx: Context, name: LimitName, limit: number, { calls, seconds }: Count): void {
    ctx.set("RateLimit-Policy", `"${name}";q=${limit};w=${WINDOW_S}`);
    ctx.set("RateLimit", `"${name}";r=${Math.max(0, limit - calls)};t=${seconds}`);
    if (calls <= limit) return;
    counter?.refused(name);
    const detail = `Rate limit of ${limit.toLocaleString("en-US")} requests per minute exceeded. Try again in ${seconds} seconds.`;
    throw retryLater(429, "rate_limited", detail, seconds);
  }

  return {
    async address(ctx: Context, next: Next): Promise<void> {
      if (counter) enforce(ctx, "address", CALLS_PER_ADDRESS, await counter.ofAddress(ctx.ip));
      return next();
    },
    /** Counts the calls of one request against the organization's plan. @throws Problem 429 */
    async organization(ctx: Context, { organizationId, plan }: ActiveToken, calls: number): Promise<void> {
      if (!counter) return;
      const limit = limitsOf(plan).requests_per_minute;
      enforce(ctx, "organization", limit, await counter.ofOrganization(organizationId, calls));
    },
  };
}
