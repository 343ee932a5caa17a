import { MANAGERS } from "../../../resources/access/scopes.ts";
import { pageQuery } from "../../../resources/http/pagination.ts";
import { readQuery } from "../../../resources/http/validate.ts";
import { isPaid, limitsOf, type Plan } from "../../../resources/plans.ts";
import type { Webhook, WebhookHealth } from "../../../resources/webhooks/types.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { day, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, emptyState, paidPlanState, table } from "../../ui/table.ts";
import { actorOf, membershipOf, pathTo } from "../access.ts";
import { sendJson, showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { eventCount, isRetried, recentDeliveries, statusBadge, toHealthView, WEBHOOKS } from "./context.ts";
import { webhookForms } from "./form.ts";
import { webhookSecrets } from "./secrets.ts";

const INTRO = "Send events to your own endpoints. Requests are signed following Standard Webhooks.";

export const webhooks: RouteModule = (router, options) => {
  const { webhooks } = options.services;
  const managers = options.allow(...MANAGERS);

  router.get(WEBHOOKS, managers, readQuery(pageQuery), async (ctx) => {
    if (!prefersHtml(ctx)) {
      const { webhooks: page, nextCursor } = await webhooks.list(actorOf(ctx), ctx.state.query);
      const health = await webhooks.health(actorOf(ctx));
      const data = page.map((webhook) => toHealthView(ctx, webhook, health));
      return sendJson(ctx, { data, next_cursor: nextCursor });
    }
    const { webhooks: all } = await webhooks.list(actorOf(ctx), { limit: 100 });
    const content = webhooksPage({
      path: pathTo(ctx, "webhooks"),
      planPath: pathTo(ctx, "plan"),
      webhooks: all,
      health: await webhooks.health(actorOf(ctx)),
      deliveriesToday: await webhooks.countDeliveriesToday(actorOf(ctx)),
      plan: membershipOf(ctx).plan,
    });
    showPage(ctx, { title: "Webhooks", intro: INTRO, section: "webhooks", ...content });
  });

  webhookForms(router, options);
  webhookSecrets(router, options);
};

type WebhooksPage = {
  path: string;
  planPath: string;
  webhooks: Webhook[];
  health: Map<string, WebhookHealth>;
  /** Since midnight UTC. */
  deliveriesToday: number;
  plan: Plan;
};

function webhooksPage(page: WebhooksPage) {
  const { path, planPath, webhooks, deliveriesToday, plan } = page;
  const list = () => table("Webhooks", columnsOf(page), webhooks);
  if (!isPaid(plan)) {
    const text = `Growth and Premium include up to ${limitsOf("growth").webhooks} webhook endpoints.`;
    if (webhooks.length === 0) return { body: paidPlanState("Webhooks require a paid plan", text, planPath) };
    return { body: html`${pausedAlert(planPath)}${list()}` };
  }
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

function columnsOf({ path, plan, health }: WebhooksPage): Columns<Webhook> {
  return {
    "Endpoint URL": ({ id, url }) =>
      html`<a class="receiver" href="${path}/${id}" title="${url}">${url.replace("https://", "")}</a>`,
    Events: eventCount,
    Status: (webhook) =>
      html`<span class="inline"${webhook.disabledReason && html` title="${webhook.disabledReason}"`}>${statusBadge(webhook, plan)}${nextAttempt(webhook, plan, health)}</span>`,
    "Last success": ({ lastSuccessAt }) => day(lastSuccessAt),
    "Last 24 hours": ({ id }) => {
      const counts = health.get(id)?.counts;
      return counts ? html`<span class="inline">${recentDeliveries(counts)}</span>` : "";
    },
  };
}

function nextAttempt(webhook: Webhook, plan: Plan, health: WebhooksPage["health"]): Html {
  const at = health.get(webhook.id)?.nextAttemptAt ?? null;
  if (at === null || !isRetried(webhook, plan)) return html``;
  return html` <span class="soft">next attempt ${at <= Date.now() ? "now" : day(at)}</span>`;
}

function pausedAlert(planPath: string): Html {
  return html`<p class="alert">Webhooks are paused on the Free plan. <a href="${planPath}">Upgrade</a> to Growth or Premium to resume them.</p>`;
}
