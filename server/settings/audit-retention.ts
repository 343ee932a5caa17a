import { AUDIT_LOG_DAYS, type Plan } from "../../resources/plans.ts";

/** Returns how long a plan keeps the audit log, as “30 days” or “2 years”. */
export function auditRetentionOf(plan: Plan): string {
  const days = AUDIT_LOG_DAYS[plan];
  if (days % 365 !== 0) return `${days} days`;
  return days === 365 ? "1 year" : `${days / 365} years`;
}
