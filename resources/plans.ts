/** The plans, in ascending order. The first one has no access to the API. */
export const PLANS = ["free", "growth", "premium"] as const;
export type Plan = (typeof PLANS)[number];

/** Returns whether a plan includes the API, MCP and webhooks. */
export function isPaid(plan: Plan): boolean {
  return plan !== "free";
}

/** Returns whether a value is the name of a plan. */
export function isPlan(value: unknown): value is Plan {
  return (PLANS as readonly unknown[]).includes(value);
}

/** The limits of a plan, as `GET /v1/organization` returns them. */
export type Limits = {
  /** Requests to `/v1` and MCP combined, per organization and minute. */
  requests_per_minute: number;
  /** Links per bulk request. */
  links_per_bulk: number;
  /** Webhooks per organization. */
  webhooks: number;
};

/** Links per bulk request on every paid plan. */
export const LINKS_PER_BULK = 100;

const LIMITS: Record<Plan, Limits> = {
  free: { requests_per_minute: 0, links_per_bulk: 0, webhooks: 0 },
  growth: { requests_per_minute: 600, links_per_bulk: LINKS_PER_BULK, webhooks: 20 },
  premium: { requests_per_minute: 3000, links_per_bulk: LINKS_PER_BULK, webhooks: 20 },
};

export function limitsOf(plan: Plan): Limits {
  return LIMITS[plan];
}
