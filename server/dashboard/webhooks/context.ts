import type { Context, Middleware } from "koa";
import { isPaid, type Plan, planRequired } from "../../../resources/plans.ts";
import { toWebhookView } from "../../../resources/webhooks/schema.ts";
import type { Webhook, WebhookHealth } from "../../../resources/webhooks/types.ts";
import { membershipOf, pathTo } from "../access.ts";
import { ORGANIZATION } from "../route.ts";

export const WEBHOOKS = `${ORGANIZATION}/webhooks`;
export const WEBHOOK = `${WEBHOOKS}/:webhook_id`;

/** Requires a paid plan. On the Free plan, webhooks can only be viewed and deleted. */
export const requirePlan: Middleware = function checkPlan(ctx, next) {
  if (!isPaid(membershipOf(ctx).plan)) throw planRequired();
  return next();
};

export function webhookIdOf(ctx: Context): string {
  return ctx.params.webhook_id as string;
}

export function webhookPath(ctx: Context): string {
  return `${pathTo(ctx, "webhooks")}/${webhookIdOf(ctx)}`;
}

/**
 * `unverified` until a test event was accepted, `failing` after a failed attempt, `paused` on a plan without
 * webhooks.
 */
export type WebhookStatus = "active" | "unverified" | "failing" | "disabled" | "paused";

export function statusOf({ enabled, verified, failingSince }: Webhook, plan: Plan): WebhookStatus {
  if (!enabled) return "disabled";
  if (!isPaid(plan)) return "paused";
  if (!verified) return "unverified";
  return failingSince === null ? "active" : "failing";
}

/** Whether the next attempt is one to wait for. */
export function isRetried(webhook: Webhook, plan: Plan): boolean {
  return ["failing", "unverified"].includes(statusOf(webhook, plan));
}

/** Whether deliveries can be sent again. */
export function canResend(webhook: Webhook, plan: Plan): boolean {
  return ["active", "failing"].includes(statusOf(webhook, plan));
}

/** Returns a webhook as the API shows it, with its status and the reasons for it. */
export function toDashboardView(ctx: Context, webhook: Webhook) {
  const { verified, failingSince, lastSuccessAt, disabledReason } = webhook;
  return {
    ...toWebhookView(webhook),
    status: statusOf(webhook, membershipOf(ctx).plan),
    failing_since: toTime(verified ? failingSince : null),
    last_success_at: toTime(lastSuccessAt),
    disabled_reason: disabledReason,
  };
}

/** Returns a webhook as `toDashboardView`, with what its deliveries say about it. */
export function toHealthView(ctx: Context, webhook: Webhook, health: Map<string, WebhookHealth>) {
  const { nextAttemptAt = null, counts = null } = health.get(webhook.id) ?? {};
  return {
    ...toDashboardView(ctx, webhook),
    next_attempt_at: toTime(nextAttemptAt),
    recent_deliveries: counts,
  };
}

function toTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
