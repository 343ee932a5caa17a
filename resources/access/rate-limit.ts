import type { ApiContext, ApiMiddleware } from "../http/api-context.ts";
import { Problem } from "../http/problem.ts";
import { limitsOf } from "../plans.ts";
import type { CallCounter, Count } from "./call-counter.ts";
import type { ActiveToken } from "./introspect.ts";

const WINDOW_S = 60;
// Twice the limit of the largest plan: stops floods, but not two organizations that share an IP address.
const CALLS_PER_ADDRESS = 6000;

/** The rate limits on calls of the API and MCP combined. */
export type CallLimits = {
  /** Counts a call against its IP address, before authentication. */
  address: ApiMiddleware;
  /** Counts the calls of one request against the organization's plan. @throws Problem 429 */
  organization(
    ctx: ApiContext,
    token: Pick<ActiveToken, "organizationId" | "plan">,
    calls: number,
  ): Promise<void>;
};

/** @param counter if absent, nothing is limited */
export function createRateLimit(counter: CallCounter | undefined): CallLimits {
  return {
    async address(ctx, next) {
      if (counter) {
        const count = await counter.ofAddress(ctx.ip);
        enforceLimit(ctx, { name: "address", limit: CALLS_PER_ADDRESS, count, counter });
      }
      return next();
    },
    async organization(ctx, { organizationId, plan }, calls) {
      if (!counter) return;
      const limit = limitsOf(plan).requests_per_minute;
      const count = await counter.ofOrganization(organizationId, calls);
      enforceLimit(ctx, { name: "organization", limit, count, counter });
    },
  };
}

type Counted = { name: "address" | "organization"; limit: number; count: Count; counter: CallCounter };

/** Sets the headers of draft-ietf-httpapi-ratelimit-headers-11 for the last limit counted. @throws Problem 429 */
function enforceLimit(ctx: ApiContext, { name, limit, count, counter }: Counted): void {
  const { calls, seconds } = count;
  ctx.set("RateLimit-Policy", `"${name}";q=${limit};w=${WINDOW_S}`);
  ctx.set("RateLimit", `"${name}";r=${Math.max(0, limit - calls)};t=${seconds}`);
  if (calls <= limit) return;
  counter.refused(name);
  const detail = `Rate limit of ${limit.toLocaleString("en-US")} requests per minute exceeded. Try again in ${seconds} seconds.`;
  throw new Problem(429, "rate_limited", detail, { headers: { "Retry-After": String(seconds) } });
}
