import type { Context, Middleware } from "koa";
import { limitsOf } from "./plans.ts";
import type { ActiveToken, CallCounter, Count } from "./ports.ts";
import { Problem } from "./problem.ts";

const WINDOW_S = 60;
// Twice what the largest plan may do: it holds up floods, not two organizations behind one address.
const CALLS_PER_ADDRESS = 6000;

/** The limits on calls of the API and MCP together. */
export type CallLimits = {
  /** Counts a call before anything is known but where it comes from. */
  address: Middleware;
  /** Counts the calls of one request against the plan of its organization. @throws Problem 429 */
  organization(
    ctx: Context,
    token: Pick<ActiveToken, "organizationId" | "plan">,
    calls: number,
  ): Promise<void>;
};

/** @param counter absent: nothing is limited */
export function limitCalls(counter: CallCounter | undefined): CallLimits {
  return {
    async address(ctx, next) {
      if (counter) check(ctx, "address", CALLS_PER_ADDRESS, await counter.ofAddress(ctx.ip));
      return next();
    },
    async organization(ctx, { organizationId, plan }, calls) {
      if (!counter) return;
      const limit = limitsOf(plan).requests_per_minute;
      check(ctx, "organization", limit, await counter.ofOrganization(organizationId, calls));
    },
  };
}

/** Shows the limit that was counted last, as draft-ietf-httpapi-ratelimit-headers-10 has it. */
function check(ctx: Context, name: string, limit: number, { calls, seconds }: Count): void {
  ctx.set("RateLimit-Policy", `"${name}";q=${limit};w=${WINDOW_S}`);
  ctx.set("RateLimit", `"${name}";r=${Math.max(0, limit - calls)};t=${seconds}`);
  if (calls <= limit) return;
  throw new Problem(429, "rate_limited", `Over ${limit} calls in a minute: wait ${seconds} seconds.`, {
    headers: { "Retry-After": String(seconds) },
  });
}
