import type { z } from "zod";
import { isPaid, type Plan } from "../../../resources/plans.ts";
import type { deliverySchema } from "../../../resources/webhooks/schema.ts";
import type { Attempt, Webhook } from "../../../resources/webhooks/types.ts";
import { formButton, linkButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { statusOf } from "./context.ts";
import { deliveryLog } from "./delivery-log.ts";
import { eventsOf, statusBadge } from "./list-page.ts";

type WebhookPage = {
  webhook: Webhook;
  /** Who created the webhook, with which app. */
  creator: Html;
  path: string;
  /** Newest first. */
  deliveries: z.output<typeof deliverySchema>[];
  query: Record<string, string>;
  nextCursor: string | null;
  /** When the next attempt of a failing or unverified webhook is due; null if none is pending. */
  nextAttemptAt: number | null;
  /** The last attempt to deliver a test event, if it failed. */
  failedTest: Attempt | undefined;
  plan: Plan;
  csrf: string | undefined;
};

/** Renders a webhook: its settings, status and deliveries. */
export function webhookPage(page: WebhookPage): { body: Html; actions: Html } {
  const { webhook, path, plan, csrf } = page;
  const mayChange = isPaid(plan);
  const isOn = mayChange && webhook.enabled;
  const isWaiting = page.deliveries.some(({ status }) => status === "pending");
  return {
    actions: mayChange ? buttons(page) : html``,
    body: html`${statusAlert(page)}
<section class="panel"><dl class="facts">
<dt>Endpoint URL</dt><dd>${webhook.url}</dd>
<dt>Events</dt><dd>${eventsOf(webhook)}</dd>
<dt>Status</dt><dd data-fact="status">${statusBadge(webhook, plan)}</dd>
<dt>Created</dt><dd>${time(webhook.createdAt)} ${page.creator}</dd>
<dt>Signing secret</dt><dd><span class="soft">hidden</span></dd>
</dl>
<div class="actions">${formButton({ action: `${path}/secret`, csrf, text: "Show secret", look: "quiet" })}${
      mayChange ? linkButton(`${path}/rotate-secret`, "Rotate secret", "quiet") : html``
    }</div>
</section>
<section class="group"><div class="title"><div><h2>Deliveries</h2>
<p class="intro">Deliveries from the last 30 days, newest first.</p></div>
<div class="actions">${isWaiting ? linkButton(path, "Refresh", "quiet") : html``}${
      isOn ? formButton({ action: `${path}/test`, csrf, text: "Send test event" }) : html``
    }</div></div>
${deliveryLog({ ...page, isOn, mayResend: isOn && webhook.verified })}
</section>
<p>${linkButton(`${path}/delete`, "Delete webhook", "danger")}</p>`,
  };
}

function buttons({ webhook: { enabled }, path, csrf }: WebhookPage): Html {
  return html`${linkButton(`${path}/edit`, "Edit", "quiet")}${formButton({
    action: path,
    csrf,
    text: enabled ? "Disable" : "Enable",
    look: enabled ? "quiet" : "primary",
    fields: { enabled: String(!enabled) },
  })}`;
}

function statusAlert({ webhook, plan, nextAttemptAt, failedTest }: WebhookPage): Html {
  const status = statusOf(webhook, plan);
  if (!isPaid(plan)) {
    return html`<p class="alert">Webhooks are paused on the Free plan. Upgrade to Growth or Premium to resume them.</p>`;
  }
  const next = nextAttemptAt === null ? html`` : html` Next attempt: ${time(nextAttemptAt)}.`;
  if (status === "unverified") {
    return html`<p class="alert${failedTest ? " bad" : ""}">${verificationState(failedTest)} Other events are sent once your endpoint responds with 2xx.${
      nextAttemptAt === null ? html` Send another test event when it is ready.` : next
    }</p>`;
  }
  if (status === "failing") {
    return html`<p class="alert bad">Deliveries to this webhook have been failing since ${time(webhook.failingSince)}.${next}</p>`;
  }
  if (status === "active") return html``;
  const { disabledReason } = webhook;
  const reason = disabledReason
    ? `This webhook was disabled automatically: ${disabledReason} Enable it when the endpoint is working again.`
    : "This webhook is disabled. Events that happen while it is disabled are not sent later.";
  return html`<p class="alert">${reason}</p>`;
}

function verificationState(failed: Attempt | undefined): string {
  if (!failed) return "Waiting for your endpoint to accept a test event.";
  if (failed.status !== undefined) return `Your endpoint responded to the test event with ${failed.status}.`;
  return `The test event couldn’t be delivered. ${failed.error ?? ""}`.trim();
}
