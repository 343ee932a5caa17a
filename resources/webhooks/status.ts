import { isPaid, type Plan } from "../plans.ts";
import type { Webhook } from "./ports.ts";

/** Whether events reach a webhook: `failing` if the last attempt failed, `paused` on a plan without webhooks. */
export type WebhookStatus = "active" | "failing" | "disabled" | "paused";

/** Returns the status of a webhook of an organization on a plan. */
export function statusOf({ enabled, failingSince }: Webhook, plan: Plan): WebhookStatus {
  if (!enabled) return "disabled";
  if (!isPaid(plan)) return "paused";
  return failingSince === null ? "active" : "failing";
}
