import type { Context, Middleware } from "koa";
import { requirePaidPlan } from "../../../resources/access/require-paid-plan.ts";
import { isPaid, type Plan } from "../../../resources/plans.ts";
import { toWebhookView } from "../../../resources/webhooks/responses.ts";
import type { Webhook } from "../../../resources/webhooks/types.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { membershipOf } from "../access.ts";
import { ORGANIZATION } from "../route.ts";

/** The path of an organization's webhooks. */
export const WEBHOOKS = `${ORGANIZATION}/webhooks`;
/** The path of one webhook. */
export const WEBHOOK = `${WEBHOOKS}/:webhook_id`;

/** Requires a paid plan. On the Free plan, webhooks can only be viewed and deleted. */
export const requirePlan: Middleware = function checkPlan(ctx, next) {
  requirePaidPlan(membershipOf(ctx).plan);
  return next();
};

/** Returns the webhook ID in the path. */
export function webhookIdOf(ctx: Context): string {
  return ctx.params.webhook_id as string;
}

/** Returns the path of the organization's webhooks. */
export function webhooksPath(ctx: Context): string {
  return sectionPath(membershipOf(ctx).id, "webhooks");
}

/** Returns the path of the webhook in the request. */
export function webhookPath(ctx: Context): string {
  return `${webhooksPath(ctx)}/${webhookIdOf(ctx)}`;
}

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

/** Returns a webhook as the API shows it, with its status and the reasons for it. */
export function toDashboardView(ctx: Context, webhook: Webhook) {
  const { verified, failingSince, disabledReason } = webhook;
  return {
    ...toWebhookView(webhook),
    status: statusOf(webhook, membershipOf(ctx).plan),
    failing_since: failingSince === null || !verified ? null : new Date(failingSince).toISOString(),
    disabled_reason: disabledReason,
  };
}
