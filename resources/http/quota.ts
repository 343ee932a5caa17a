import { Problem } from "./problem.ts";

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
