import type { z } from "zod";
import { isPaid, type Plan } from "../../../resources/plans.ts";
import type { Webhook } from "../../../resources/webhooks/ports.ts";
import type { deliverySchema } from "../../../resources/webhooks/schema.ts";
import { statusOf } from "../../../resources/webhooks/status.ts";
import { type Html, html } from "../html.ts";
import { formButton, linkButton, time } from "./controls.ts";
import { deliveryLog } from "./deliveries.ts";
import { eventsOf, statusBadge } from "./webhooks.ts";

type WebhookPage = {
  webhook: Webhook;
  path: string;
  /** Newest first. */
  deliveries: z.output<typeof deliverySchema>[];
  query: Record<string, string>;
  nextCursor: string | null;
  /** When a failing webhook is tried next; null if that isn't known. */
  nextAttemptAt: number | null;
  plan: Plan;
  csrf: string | undefined;
};

/** A webhook: what it is told of, whether it is, and what it was told. */
export function webhookPage(page: WebhookPage): { body: Html; actions: Html } {
  const { webhook, path, plan, csrf } = page;
  const mayChange = isPaid(plan);
  const isOn = mayChange && webhook.enabled;
  const isWaiting = page.deliveries.some(({ status }) => status === "pending");
  return {
    actions: mayChange ? changes(page) : html``,
    body: html`${standing(page)}
<section class="panel"><dl class="facts">
<dt>Address</dt><dd>${webhook.url}</dd>
<dt>Told of</dt><dd>${eventsOf(webhook)}</dd>
<dt>Status</dt><dd data-fact="status">${statusBadge(webhook, plan)}</dd>
<dt>Created</dt><dd>${time(webhook.createdAt)}</dd>
<dt>Secret</dt><dd><span class="soft">shown when it was made</span></dd>
</dl>
${mayChange ? html`<div class="actions">${linkButton(`${path}/rotate-secret`, "New secret", "quiet")}</div>` : html``}
</section>
<section class="group"><div class="title"><div><h2>Deliveries</h2>
<p class="intro">What it was told in the last 30 days, newest first.</p></div>
<div class="actions">${isWaiting ? linkButton(path, "Look again", "quiet") : html``}${
      isOn ? formButton({ action: `${path}/test`, csrf, text: "Send test event" }) : html``
    }</div></div>
${deliveryLog({ ...page, isOn })}
</section>
<p>${linkButton(`${path}/delete`, "Delete webhook", "danger")}</p>`,
  };
}

function changes({ webhook: { enabled }, path, csrf }: WebhookPage): Html {
  return html`${linkButton(`${path}/edit`, "Edit", "quiet")}${formButton({
    action: path,
    csrf,
    text: enabled ? "Disable" : "Enable",
    look: enabled ? "quiet" : "primary",
    fields: { enabled: String(!enabled) },
  })}`;
}

function standing({ webhook, plan, nextAttemptAt }: WebhookPage): Html {
  const status = statusOf(webhook, plan);
  if (!isPaid(plan)) {
    return html`<p class="alert">Webhooks are paused on the Free plan. Upgrade to resume them.</p>`;
  }
  if (status === "failing") {
    const next = nextAttemptAt === null ? html`` : html` Next attempt: ${time(nextAttemptAt)}.`;
    return html`<p class="alert bad">Deliveries to this webhook have been failing since ${time(webhook.failingSince)}.${next}</p>`;
  }
  if (status === "active") return html``;
  const { disabledReason } = webhook;
  const reason = disabledReason
    ? `The service disabled this webhook: ${disabledReason} Enable it when the receiver is back.`
    : "This webhook is disabled: it is told nothing, and what happens meanwhile is not sent later.";
  return html`<p class="alert">${reason}</p>`;
}
