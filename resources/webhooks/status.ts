import { isPaid, type Plan } from "../plans.ts";
import type { Webhook } from "./types.ts";

/** The health of a webhook: `failing` if its last attempt failed, `paused` on a plan without webhooks. */
export type WebhookStatus = "active" | "failing" | "disabled" | "paused";

/** Returns the status of a webhook, given its organization's plan. */
export function statusOf({ enabled, failingSince }: Webhook, plan: Plan): WebhookStatus {
  if (!enabled) return "disabled";
  if (!isPaid(plan)) return "paused";
  return failingSince === null ? "active" : "failing";
}
