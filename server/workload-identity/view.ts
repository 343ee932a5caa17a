import type { TrustRule } from "../../adapters/organizations/trust-rules.ts";

/** Returns a trust rule as the dashboard's JSON and the command line show it. */
export function showTrustRule({ createdBy, createdAt, lastUsedAt, ...rule }: TrustRule) {
  return {
    ...rule,
    created_by: createdBy,
    created_at: new Date(createdAt).toISOString(),
    last_used_at: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString(),
  };
}
