import type { z } from "zod";
import { isPaid, type Plan } from "../../../resources/plans.ts";
import type { deliverySchema } from "../../../resources/webhooks/schema.ts";
import type { Attempt, Webhook } from "../../../resources/webhooks/types.ts";
import { badge, formButton, linkButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, emptyState, pagination, table } from "../../ui/table.ts";
import { statusOf } from "./context.ts";
import { eventsOf, statusBadge } from "./list-page.ts";

type Delivery = z.output<typeof deliverySchema>;

type WebhookPage = {
  webhook: Webhook;
  creator: Html;
  path: string;
  /** Newest first. */
  deliveries: Delivery[];
  query: Record<string, string>;
  nextCursor: string | null;
  /** When the next attempt of a failing or unverified webhook is due; null if none is pending. */
  nextAttemptAt: number | null;
  failedTest: Attempt | undefined;
  plan: Plan;
};

export function webhookPage(page: WebhookPage) {
  const { webhook, path, plan } = page;
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
<div class="actions">${formButton({ action: `${path}/secret`, text: "Show secret", look: "quiet" })}${
      mayChange && linkButton(`${path}/rotate-secret`, "Rotate secret", "quiet")
    }</div>
</section>
<section class="group"><div class="title"><div><h2>Deliveries</h2>
<p class="intro">Deliveries from the last 30 days, newest first.</p></div>
<div class="actions">${isWaiting && linkButton(path, "Refresh", "quiet")}${
      isOn && formButton({ action: `${path}/test`, text: "Send test event" })
    }</div></div>
${deliveryLog(page, isOn)}
</section>
<p>${linkButton(`${path}/delete`, "Delete webhook", "danger")}</p>`,
  };
}

function buttons({ webhook: { enabled }, path }: WebhookPage): Html {
  return html`${linkButton(`${path}/edit`, "Edit", "quiet")}${formButton({
    action: path,
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
      nextAttemptAt === null && failedTest?.status === undefined
        ? html` Send another test event when it is ready.`
        : next
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
  if (failed.status !== undefined)
    return `Not verified: the last test got ${failed.status}. Fix it, then send another.`;
  return `The test event couldn’t be delivered. ${failed.error ?? ""}`.trim();
}

/** Renders the deliveries; each expands to show its request and all attempts. @param isOn whether events are sent */
function deliveryLog({ webhook, path, deliveries, query, nextCursor }: WebhookPage, isOn: boolean): Html {
  if (deliveries.length === 0) {
    return emptyState("No deliveries yet", "Send a test event to see its delivery here.");
  }
  return html`<ol class="deliveries">${deliveries.map(
    (delivery) => html`<li><details><summary class="delivery">${summaryOf(delivery, isOn)}</summary>
<div class="opened">${delivery.attempts.length > 0 ? table("Attempts", COLUMNS, delivery.attempts) : html`<p class="soft">No attempts yet.</p>`}
<h3>Request</h3>
<pre tabindex="0" role="region" aria-label="Request of ${delivery.id}"><code>${JSON.stringify(delivery.request, null, 2)}</code></pre>
${
  isOn &&
  webhook.verified &&
  formButton({
    action: `${path}/deliveries/${delivery.id}/resend`,
    text: "Resend",
    about: `${delivery.type} from ${delivery.created_at.slice(0, 16)}`,
  })
}</div></details></li>
`,
  )}</ol>
${pagination({ path, query, nextCursor })}`;
}

const COLUMNS: Columns<Delivery["attempts"][number]> = {
  Time: ({ at }) => time(Date.parse(at)),
  Response: ({ status, error }) => String(status ?? error ?? "none"),
  Duration: ({ ms }) => `${ms.toLocaleString("en")} ms`,
};

function summaryOf(delivery: Delivery, isOn: boolean): Html {
  const { type, attempts, created_at } = delivery;
  const last = attempts.at(-1);
  const response = last?.status ?? last?.error;
  return html`${deliveryBadge(delivery)} <strong>${type}</strong> <span class="soft">${time(Date.parse(created_at))}</span>${
    response !== undefined && html` <span class="soft">${response}</span>`
  }${isOn && nextAttempt(delivery)}`;
}

function deliveryBadge(delivery: Delivery): Html {
  if (delivery.status === "succeeded") return badge("Delivered", "good");
  return hasFailed(delivery) ? badge("Failed", "bad") : badge("Pending");
}

function nextAttempt(delivery: Delivery): Html {
  const { status, next_attempt_at: at } = delivery;
  if (status !== "pending") return html``;
  if (at === null) return html` <span class="soft">Sent once the endpoint is verified</span>`;
  if (!hasFailed(delivery)) return html``;
  return html` <span class="bad">Retrying at ${time(Date.parse(at))}</span>`;
}

/** Returns whether the last attempt failed. The last attempt of a resent delivery may have succeeded. */
function hasFailed({ status, attempts }: Delivery): boolean {
  if (status !== "pending") return status === "failed";
  const last = attempts.at(-1);
  return last !== undefined && !(last.status !== undefined && last.status >= 200 && last.status < 300);
}
