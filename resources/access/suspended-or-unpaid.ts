import { Problem } from "../http/problem.ts";
import { isPaid, type Plan } from "../plans.ts";
import type { ActiveToken } from "./introspect.ts";

/** @throws Problem 403 `organization_suspended` if an organization that the token depends on is suspended */
export function rejectSuspended({ suspended }: ActiveToken): void {
  if (!suspended) return;
  const detail = "The operator of this service suspended the organization. Contact the operator.";
  throw new Problem(403, "organization_suspended", detail);
}

/** @throws Problem 403 `plan_required` on the Free plan, which has no API, MCP or webhooks */
export function requirePaidPlan(plan: Plan): void {
  if (!isPaid(plan)) throw planRequired();
}

export function planRequired(): Problem {
  return new Problem(403, "plan_required", "This requires the Growth or Premium plan.");
}
