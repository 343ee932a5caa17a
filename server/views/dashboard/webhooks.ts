import { limitsOf } from "../../../resources/plans.ts";
import type { Webhook } from "../../../resources/webhooks/ports.ts";
import { type Html, html } from "../html.ts";
import { badge, linkButton, time } from "./controls.ts";
import { type Column, emptyState, table } from "./table.ts";

type WebhooksPage = {
  path: string;
  planPath: string;
  webhooks: Webhook[];
  isPaid: boolean;
  /** How many there may be. */
  limit: number;
};

/** The webhooks, and how many more there may be. */
export function webhooksPage({ path, planPath, webhooks, isPaid, limit }: WebhooksPage): {
  body: Html;
  actions?: Html;
} {
  const list = () => html`<div class="links">${table("Webhooks", columnsOf(path), webhooks)}</div>`;
  if (!isPaid) return { body: webhooks.length > 0 ? html`${resting(planPath)}${list()}` : noPlan(planPath) };
  const create = linkButton(`${path}/new`, "New webhook");
  if (webhooks.length === 0) {
    const text =
      "Give an address of your server, and it is told of new links, clicks and other events within a second. What fails is tried again for three days.";
    return { body: emptyState("No webhooks yet", text, create) };
  }
  const isFull = webhooks.length >= limit;
  const count = `${webhooks.length} of ${limit} webhooks.${isFull ? " Delete one to make room for another." : ""}`;
  return { body: html`${list()}<p class="soft">${count}</p>`, ...(!isFull && { actions: create }) };
}

/** Whether it is told anything at the moment. */
export function stateOf({ enabled, disabledReason }: Webhook): Html {
  if (enabled) return badge("enabled", "good");
  return badge(disabledReason ? "disabled by the service" : "disabled", "warn");
}

/** What it is told of. */
export function eventsOf({ events }: Webhook): Html {
  return html`<span class="tags">${events.map((event) => badge(event))}</span>`;
}

function columnsOf(path: string): Column<Webhook>[] {
  return [
    { head: "Address", cell: ({ id, url }) => html`<a class="receiver" href="${path}/${id}">${url}</a>` },
    { head: "Told of", cell: eventsOf },
    { head: "State", cell: stateOf },
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

function resting(planPath: string): Html {
  return html`<p class="alert">These webhooks rest: on the Free plan they are told nothing, and cannot be changed. <a href="${planPath}">Growth and Premium</a> wake them as they are.</p>`;
}
