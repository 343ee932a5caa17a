import { isPaid, limitsOf, type Plan } from "../../../resources/plans.ts";
import type { Webhook } from "../../../resources/webhooks/ports.ts";
import { statusOf } from "../../../resources/webhooks/status.ts";
import { type Html, html } from "../html.ts";
import { badge, linkButton, time } from "./controls.ts";
import { type Column, emptyState, table } from "./table.ts";

type WebhooksPage = {
  path: string;
  planPath: string;
  webhooks: Webhook[];
  plan: Plan;
};

/** The webhooks, and how many more there may be. */
export function webhooksPage({ path, planPath, webhooks, plan }: WebhooksPage): {
  body: Html;
  actions?: Html;
} {
  const list = () => html`<div class="links">${table("Webhooks", columnsOf(path, plan), webhooks)}</div>`;
  if (!isPaid(plan))
    return { body: webhooks.length > 0 ? html`${paused(planPath)}${list()}` : noPlan(planPath) };
  const create = linkButton(`${path}/new`, "New webhook");
  if (webhooks.length === 0) {
    const text =
      "Give an address of your server, and it is told of new links, clicks and other events within a second. What fails is tried again for three days.";
    return { body: emptyState("No webhooks yet", text, create) };
  }
  const limit = limitsOf(plan).webhooks;
  const isFull = webhooks.length >= limit;
  const count = `${webhooks.length} of ${limit} webhooks.${isFull ? " Delete one to make room for another." : ""}`;
  return { body: html`${list()}<p class="soft">${count}</p>`, ...(!isFull && { actions: create }) };
}

/** Shows the status of a webhook and the reason for it. */
export function statusBadge(webhook: Webhook, plan: Plan): Html {
  const { failingSince, disabledReason } = webhook;
  switch (statusOf(webhook, plan)) {
    case "active":
      return badge("Active", "good");
    case "failing":
      return html`${badge("Failing", "bad")} <span class="soft">since ${time(failingSince)}</span>`;
    case "paused":
      return html`${badge("Paused", "warn")} <span class="soft">on the Free plan</span>`;
    case "disabled":
      return html`${badge("Disabled")}${disabledReason ? html` <span class="soft">${disabledReason}</span>` : html``}`;
  }
}

/** What it is told of. */
export function eventsOf({ events }: Webhook): Html {
  return html`<span class="tags">${events.map((event) => badge(event))}</span>`;
}

function columnsOf(path: string, plan: Plan): Column<Webhook>[] {
  return [
    { head: "Address", cell: ({ id, url }) => html`<a class="receiver" href="${path}/${id}">${url}</a>` },
    { head: "Told of", cell: eventsOf },
    { head: "Status", cell: (webhook) => statusBadge(webhook, plan) },
    { head: "Created", cell: ({ createdAt }) => time(createdAt) },
  ];
}

function noPlan(planPath: string): Html {
  return emptyState(
    "Webhooks need a paid plan",
    `On Growth and Premium up to ${limitsOf("growth").webhooks} addresses of yours are told of new links, clicks and other events.`,
    linkButton(planPath, "Compare the plans"),
  );
}

function paused(planPath: string): Html {
  return html`<p class="alert">Webhooks are paused on the Free plan. <a href="${planPath}">Upgrade</a> to resume them.</p>`;
}
