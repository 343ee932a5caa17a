/** The plans, from the one without access to the API upward. */
export const PLANS = ["free", "growth", "premium"] as const;
export type Plan = (typeof PLANS)[number];

/** Whether a plan opens the API and MCP. */
export function isPaid(plan: Plan): boolean {
  return plan !== "free";
}

/** Whether a word names a plan. */
export function isPlan(word: unknown): word is Plan {
  return (PLANS as readonly unknown[]).includes(word);
}

/** What a plan allows; shown by `GET /v1/organization`. */
export type Limits = {
  /** Calls of `/v1` and MCP together, per organization and minute. */
  requests_per_minute: number;
  /** Links in one bulk call. */
  links_per_bulk: number;
  /** Webhooks that may exist at a time. */
  webhooks: number;
};

/** Links in one bulk call, on every plan that opens the API. */
export const LINKS_PER_BULK = 100;

const LIMITS: Record<Plan, Limits> = {
  free: { requests_per_minute: 0, links_per_bulk: 0, webhooks: 0 },
  growth: { requests_per_minute: 600, links_per_bulk: LINKS_PER_BULK, webhooks: 20 },
  premium: { requests_per_minute: 3000, links_per_bulk: LINKS_PER_BULK, webhooks: 20 },
};

/** The limits of a plan. */
export function limitsOf(plan: Plan): Limits {
  return LIMITS[plan];
}
