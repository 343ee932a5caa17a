import { isPaid, limitsOf, type Plan } from "../../../resources/plans.ts";
import { HEALTH_MAX } from "../../../resources/webhooks/service.ts";
import type { DeliveryCounts, Webhook, WebhookHealth } from "../../../resources/webhooks/types.ts";
import { badge, linkButton, time, timeOrNow } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, emptyState, table } from "../../ui/table.ts";
import { isRetried, statusOf } from "./context.ts";

type WebhooksPage = {
  path: string;
  planPath: string;
  webhooks: Webhook[];
  health: Map<string, WebhookHealth>;
  /** Since midnight UTC. */
  deliveriesToday: number;
  plan: Plan;
};

export function webhooksPage(page: WebhooksPage) {
  const { path, planPath, webhooks, deliveriesToday, plan } = page;
  const list = () => table("Webhooks", columnsOf(page), webhooks);
  if (!isPaid(plan))
    return {
      body: webhooks.length > 0 ? html`${pausedAlert(planPath)}${list()}` : planRequiredState(planPath),
    };
  const create = linkButton(`${path}/new`, "Create webhook");
  if (webhooks.length === 0) {
    const text =
      "Add an endpoint to receive links, clicks and other events within a second. Failed deliveries are retried for three days.";
    return { body: emptyState("No webhooks yet", text, create) };
  }
  const limit = limitsOf(plan).webhooks;
  const isFull = webhooks.length >= limit;
  const count = `${webhooks.length} of ${limit} webhooks.${isFull ? " Delete one to create another." : ""}`;
  const { deliveries_per_day: quota } = limitsOf(plan);
  const usage = `${deliveriesToday.toLocaleString("en")} of ${quota.toLocaleString("en")} deliveries today (UTC).`;
  return {
    body: html`${deliveriesToday >= quota && quotaAlert(quota)}${list()}<p class="soft">${count} ${usage}</p>`,
    ...(!isFull && { actions: create }),
  };
}

function quotaAlert(quota: number): Html {
  return html`<p class="alert bad">Your organization has reached its quota of ${quota.toLocaleString("en")} deliveries per day. Further deliveries wait until 00:00 UTC.</p>`;
}

export function statusBadge(webhook: Webhook, plan: Plan): Html {
  const { failingSince, disabledReason } = webhook;
  switch (statusOf(webhook, plan)) {
    case "active":
      return badge("Active", "good");
    case "unverified":
      return html`${badge("Unverified", "warn")}${failingSince !== null && html` <span class="soft">the test event failed</span>`}`;
    case "failing":
      return html`${badge("Failing", "bad")} <span class="soft">since ${time(failingSince)}</span>`;
    case "paused":
      return html`${badge("Paused", "warn")} <span class="soft">on the Free plan</span>`;
    case "disabled":
      return html`${badge("Disabled")}${disabledReason && html` <span class="soft">${disabledReason}</span>`}`;
  }
}

export function eventsOf({ events }: Webhook): Html {
  return html`<span class="tags">${events.map((event) => badge(event))}</span>`;
}

/** Renders how the newest deliveries of the last 24 hours went. */
export function recentDeliveries({ succeeded, failed, pending }: DeliveryCounts): Html {
  const total = succeeded + failed + pending;
  if (total === 0) return html`<span class="soft">none</span>`;
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

function format(count: number): string {
  return count.toLocaleString("en");
}

function columnsOf({ path, plan, health }: WebhooksPage): Columns<Webhook> {
  return {
    "Endpoint URL": ({ id, url }) => html`<a class="receiver" href="${path}/${id}">${url}</a>`,
    Events: eventsOf,
    Status: (webhook) => html`${statusBadge(webhook, plan)}${nextAttempt(webhook, plan, health)}`,
    "Last success": ({ lastSuccessAt }) => time(lastSuccessAt),
    "Last 24 hours": ({ id }) => {
      const counts = health.get(id)?.counts;
      return counts ? recentDeliveries(counts) : "";
    },
  };
}

function nextAttempt(webhook: Webhook, plan: Plan, health: WebhooksPage["health"]): Html {
  const at = health.get(webhook.id)?.nextAttemptAt ?? null;
  if (at === null || !isRetried(webhook, plan)) return html``;
  return html` <span class="soft">· next attempt ${timeOrNow(at)}</span>`;
}

function planRequiredState(planPath: string): Html {
  return emptyState(
    "Webhooks require a paid plan",
    `Growth and Premium include up to ${limitsOf("growth").webhooks} webhook endpoints.`,
    linkButton(planPath, "Compare plans"),
  );
}

function pausedAlert(planPath: string): Html {
  return html`<p class="alert">Webhooks are paused on the Free plan. <a href="${planPath}">Upgrade</a> to Growth or Premium to resume them.</p>`;
}
