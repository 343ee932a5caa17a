import type { Context, Middleware } from "koa";
import { toTimestamp } from "../../../resources/http/to-json.ts";
import { isPaid, type Plan, planRequired } from "../../../resources/plans.ts";
import type { Services } from "../../../resources/services.ts";
import { toWebhookView } from "../../../resources/webhooks/schema.ts";
import { HEALTH_MAX } from "../../../resources/webhooks/service.ts";
import type { DeliveryCounts, Webhook, WebhookHealth } from "../../../resources/webhooks/types.ts";
import { badge, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { capitalized } from "../../ui/text.ts";
import { actorOf, membershipOf, pathTo } from "../access.ts";
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

/** @throws Problem 404 */
export function findWebhook(ctx: Context, { webhooks }: Services): Promise<Webhook> {
  return webhooks.get(actorOf(ctx), webhookIdOf(ctx));
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

export function canResend(webhook: Webhook, plan: Plan): boolean {
  return ["active", "failing"].includes(statusOf(webhook, plan));
}

const LOOKS = {
  active: "good",
  unverified: "warn",
  failing: "bad",
  paused: "warn",
  disabled: "neutral",
} as const satisfies Record<WebhookStatus, string>;

export function statusBadge(webhook: Webhook, plan: Plan): Html {
  const status = statusOf(webhook, plan);
  return badge(capitalized(status), LOOKS[status]);
}

/** Renders the status with what is known about it. */
export function statusFact(webhook: Webhook, plan: Plan): Html {
  const { failingSince, disabledReason } = webhook;
  const known = {
    active: undefined,
    unverified: failingSince !== null && "the test event failed",
    failing: html`since ${time(failingSince)}`,
    paused: "on the Free plan",
    disabled: disabledReason,
  }[statusOf(webhook, plan)];
  return html`${statusBadge(webhook, plan)}${known && html` <span class="soft">${known}</span>`}`;
}

export function eventsOf({ events }: Webhook): Html {
  return html`<span class="tags">${events.map((event) => badge(event))}</span>`;
}

/** Renders the only event, or how many there are, and which ones on hover. */
export function eventCount({ events }: Webhook): Html {
  const [first, ...others] = events;
  return others.length === 0
    ? html`${first}`
    : html`<span title="${events.join(", ")}">${events.length} events</span>`;
}

/** Renders how the newest deliveries of the last 24 hours went. */
export function recentDeliveries({ succeeded, failed, pending }: DeliveryCounts): Html {
  const total = succeeded + failed + pending;
  if (total === 0) return html`<span class="soft">none</span>`;
  const format = (count: number) => count.toLocaleString("en");
  const others = [failed > 0 && `${format(failed)} failed`, pending > 0 && `${format(pending)} waiting`];
  const text = others.filter(Boolean).join(", ");
  const percent = roundedShare(succeeded, total);
  const all = total < HEALTH_MAX ? format(total) : `the last ${format(total)}`;
  return html`${percent}% of ${all} delivered${text && html` <span class="soft">${text}</span>`}`;
}

/** Rounds to a percentage, of which 0 means none and 100 means all. */
function roundedShare(part: number, total: number): number {
  if (part === 0 || part === total) return part === 0 ? 0 : 100;
  return Math.min(99, Math.max(1, Math.round((part / total) * 100)));
}

/** Returns a webhook as the API shows it, with its status and the reasons for it. */
export function toDashboardView(ctx: Context, webhook: Webhook) {
  const { verified, failingSince, lastSuccessAt, disabledReason } = webhook;
  return {
    ...toWebhookView(webhook),
    status: statusOf(webhook, membershipOf(ctx).plan),
    failing_since: toTimestamp(verified ? failingSince : null),
    last_success_at: toTimestamp(lastSuccessAt),
    disabled_reason: disabledReason,
  };
}

/** Returns a webhook as `toDashboardView`, with what its deliveries say about it. */
export function toHealthView(ctx: Context, webhook: Webhook, health: Map<string, WebhookHealth>) {
  const { nextAttemptAt = null, counts = null } = health.get(webhook.id) ?? {};
  return {
    ...toDashboardView(ctx, webhook),
    next_attempt_at: toTimestamp(nextAttemptAt),
    recent_deliveries: counts,
  };
}
