import { z } from "zod";
import { Problem } from "./http/problem.ts";

/** The plans, in ascending order. The first one has no access to the API. */
export const PLANS = ["free", "growth", "premium"] as const;
export type Plan = (typeof PLANS)[number];

export function isPaid(plan: Plan): boolean {
  return plan !== "free";
}

export function isPlan(value: unknown): value is Plan {
  return (PLANS as readonly unknown[]).includes(value);
}

/** The limits of a plan, as `GET /v1/organization` returns them. Retries of deliveries aren't counted. */
export const limitsSchema = z.object({
  requests_per_minute: z.int().describe("REST and MCP requests per minute, combined."),
  links_per_bulk: z.int().describe("Links per bulk request."),
  webhooks: z.int().describe("Webhooks per organization."),
  domains: z.int().describe("Domains per organization."),
  links: z.int(),
  link_bytes: z.int().describe("Stored text of all links."),
  members: z.int().describe("With pending invitations."),
  deliveries_per_day: z.int().describe("Webhook deliveries per UTC day."),
});
export type Limits = z.output<typeof limitsSchema>;

/** How many days an organization's audit log keeps an entry. */
export const AUDIT_LOG_DAYS: Record<Plan, number> = { free: 30, growth: 365, premium: 730 };

/** Links per bulk request on every paid plan. */
export const LINKS_PER_BULK = 100;

/** The organizations that a user may own. */
export const ORGANIZATIONS_PER_USER = 20;

const MB = 1_000_000;

const LIMITS: Record<Plan, Limits> = {
  free: {
    requests_per_minute: 0,
    links_per_bulk: 0,
    webhooks: 0,
    deliveries_per_day: 0,
    domains: 0,
    links: 1_000,
    link_bytes: 10 * MB,
    members: 25,
  },
  growth: {
    requests_per_minute: 600,
    links_per_bulk: LINKS_PER_BULK,
    webhooks: 20,
    deliveries_per_day: 100_000,
    domains: 5,
    links: 1_000_000,
    link_bytes: 1_000 * MB,
    members: 250,
  },
  premium: {
    requests_per_minute: 3000,
    links_per_bulk: LINKS_PER_BULK,
    webhooks: 20,
    deliveries_per_day: 1_000_000,
    domains: 50,
    links: 10_000_000,
    link_bytes: 10_000 * MB,
    members: 2_500,
  },
};

export function limitsOf(plan: Plan): Limits {
  return LIMITS[plan];
}

type Exceeded = { code: "ERR_QUOTA_EXCEEDED"; quota: keyof typeof DETAILS; limit: number };

const number = (value: number) => value.toLocaleString("en-US");

const DETAILS = {
  links: (limit: number) =>
    `Your plan includes ${number(limit)} links. Delete links that you no longer need, or upgrade the plan.`,
  link_bytes: (limit: number) =>
    `Your plan includes ${number(limit / 1_000_000)} MB of link data. Delete links or shorten their metadata, or upgrade the plan.`,
  members: (limit: number) =>
    `Your plan includes ${number(limit)} members, counting pending invitations. Remove members, revoke invitations, or upgrade the plan.`,
  organizations: (limit: number) =>
    `You can own up to ${number(limit)} organizations. Delete one that you no longer need.`,
};

/** Handles the error of a change. @throws Problem 403 `quota_exceeded` that names the quota and its limit */
export function throwQuotaProblem(error: unknown): never {
  throw toQuotaProblem(error);
}

/** Returns a 403 for an exceeded quota, and any other error unchanged. */
export function toQuotaProblem(error: unknown): unknown {
  if (!isExceeded(error)) return error;
  return new Problem(403, "quota_exceeded", DETAILS[error.quota](error.limit));
}

/** Recognizes the errors of stores by their code, because the stores are not known here. */
function isExceeded(error: unknown): error is Exceeded {
  return (error as Partial<Exceeded> | undefined)?.code === "ERR_QUOTA_EXCEEDED";
}

/** Returns a 403 for the Free plan, which has no API, MCP or webhooks. */
export function planRequired(): Problem {
  return new Problem(403, "plan_required", "This requires the Growth or Premium plan.");
}
