import { AUDIT_LOG_DAYS } from "../../adapters/events/retention.ts";
import type { Plan } from "../../resources/plans.ts";

/** Returns how long the audit log is kept on a plan, such as “30 days” or “2 years”. */
export function retentionOf(plan: Plan): string {
  const days = AUDIT_LOG_DAYS[plan];
  if (days % 365 !== 0) return `${days} days`;
  return days === 365 ? "1 year" : `${days / 365} years`;
}
