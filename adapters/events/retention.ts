import type { Plan } from "../../resources/plans.ts";

/** For how many days an entry is kept in the audit log of an organization, by its plan. */
export const AUDIT_LOG_DAYS: Record<Plan, number> = { free: 30, growth: 365, premium: 730 };

// The operator's own log belongs to no plan.
const OPERATOR_LOG_DAYS = 730;
const DAY_MS = 24 * 60 * 60 * 1000;

export function retentionMs(plan: Plan | undefined): number {
  return (plan ? AUDIT_LOG_DAYS[plan] : OPERATOR_LOG_DAYS) * DAY_MS;
}
