import { isPaid, type Plan } from "../plans.ts";
import type { Webhook } from "./types.ts";

/**
 * The health of a webhook: `unverified` until its endpoint has accepted a test event, `failing` if its last attempt failed,
 * `paused` on a plan without webhooks.
 */
export type WebhookStatus = "active" | "unverified" | "failing" | "disabled" | "paused";

/** Returns the status of a webhook, given its organization's plan. */
export function statusOf({ enabled, verified, failingSince }: Webhook, plan: Plan): WebhookStatus {
  if (!enabled) return "disabled";
  if (!isPaid(plan)) return "paused";
  if (!verified) return "unverified";
  return failingSince === null ? "active" : "failing";
}
