import { Problem } from "../http/problem.ts";
import { isPaid, type Plan } from "../plans.ts";

/** @throws Problem 403 `plan_required` on the Free plan, which has no API, MCP or webhooks */
export function requirePaidPlan(plan: Plan): void {
  if (!isPaid(plan)) throw planRequired();
}

/** Returns the problem itself, for a plan that is only known to be too low. */
export function planRequired(): Problem {
  return new Problem(403, "plan_required", "This requires the Growth or Premium plan.");
}
