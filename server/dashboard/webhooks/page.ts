import { isPaid, type Plan } from "../../../resources/plans.ts";
import type { Attempt, WebhookHealth } from "../../../resources/webhooks/types.ts";
import { formButton, linkButton, time, timeOrNow } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { canResend, statusOf } from "./context.ts";
import { type DeliveryList, deliveryList } from "./delivery-list.ts";
import { eventsOf, recentDeliveries, statusBadge } from "./list-page.ts";

type WebhookPage = Omit<DeliveryList, "isOn" | "canResend"> & {
  creator: Html;
  /** A failed attempt of a failing webhook, if the log has one here. */
  failedAttempt: Attempt | undefined;
  failedTest: Attempt | undefined;
  plan: Plan;
};

export function webhookPage(page: WebhookPage) {
  const { webhook, path, plan } = page;
  const mayChange = isPaid(plan);
  const isOn = mayChange && webhook.enabled;
  const mayResend = canResend(webhook, plan);
  const has = (wanted: string) => page.deliveries.some(({ status }) => status === wanted);
  return {
    actions: mayChange ? buttons(page) : html``,
    body: html`${statusAlert(page)}
<section class="panel"><dl class="facts">
<dt>Endpoint URL</dt><dd>${webhook.url}</dd>
<dt>Events</dt><dd>${eventsOf(webhook)}</dd>
<dt>Status</dt><dd data-fact="status">${statusBadge(webhook, plan)}</dd>
<dt>Last success</dt><dd>${time(webhook.lastSuccessAt)}</dd>
<dt>Last 24 hours</dt><dd>${recentDeliveries(page.health.counts)}</dd>
<dt>Created</dt><dd>${time(webhook.createdAt)} ${page.creator}</dd>
<dt>Signing secret</dt><dd><span class="soft">hidden</span></dd>
</dl>
<div class="actions">${formButton({ action: `${path}/secret`, text: "Show secret", look: "quiet" })}${
      mayChange && linkButton(`${path}/rotate-secret`, "Rotate secret", "quiet")
    }</div>
</section>
<section class="group"><div class="title"><div><h2>Deliveries</h2>
<p class="intro">Deliveries from the last 30 days, newest first.</p></div>
<div class="actions">${has("pending") && linkButton(path, "Refresh", "quiet")}${
      mayResend &&
      has("failed") &&
      linkButton(`${path}/deliveries/resend-failed`, "Resend all failed", "quiet")
    }${isOn && formButton({ action: `${path}/test`, text: "Send test event" })}</div></div>
${deliveryList({ ...page, isOn, canResend: mayResend })}
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

function statusAlert({ webhook, plan, health, failedAttempt, failedTest }: WebhookPage): Html {
  const status = statusOf(webhook, plan);
  if (!isPaid(plan)) {
    return html`<p class="alert">Webhooks are paused on the Free plan. Upgrade to Growth or Premium to resume them.</p>`;
  }
  const { nextAttemptAt } = health;
  const next = nextAttemptAt === null ? html`` : html` Next attempt: ${timeOrNow(nextAttemptAt)}.`;
  if (status === "unverified") {
    return html`<p class="alert${failedTest ? " bad" : ""}">${verificationState(failedTest)} Other events are sent once your endpoint responds with 2xx.${
      nextAttemptAt === null && failedTest?.status === undefined
        ? html` Send another test event when it is ready.`
        : next
    }</p>`;
  }
  if (status === "failing") {
    return html`<p class="alert bad">Deliveries to this webhook have been failing since ${time(webhook.failingSince)}.${responseOf(failedAttempt)}${pauseOf(health) ?? next}</p>`;
  }
  if (status === "active") return html``;
  const { disabledReason } = webhook;
  const reason = disabledReason
    ? `This webhook was disabled automatically: ${disabledReason} Enable it when the endpoint is working again.`
    : "This webhook is disabled. Events that happen while it is disabled are not sent later.";
  return html`<p class="alert">${reason}</p>`;
}

function responseOf(failed: Attempt | undefined): string {
  if (!failed) return "";
  return failed.status === undefined
    ? ` ${failed.error ?? ""}`
    : ` Your endpoint responded with ${failed.status}.`;
}

/** Returns why nothing is sent, and until when. */
function pauseOf({ blockedUntil, pausedUntil, failures }: WebhookHealth): Html | undefined {
  const now = Date.now();
  if (pausedUntil !== null && pausedUntil > Math.max(now, blockedUntil ?? 0))
    return html` Paused until ${time(pausedUntil)}, as your endpoint asked for with <code>Retry-After</code>.`;
  if (blockedUntil === null || blockedUntil <= now) return undefined;
  return html` Paused until ${time(blockedUntil)} after ${failures.toLocaleString("en")} failures in a row. A test event or Send now ends the pause.`;
}

function verificationState(failed: Attempt | undefined): string {
  if (!failed) return "Waiting for your endpoint to accept a test event.";
  if (failed.status !== undefined)
    return `Not verified: the last test got ${failed.status}. Fix it, then send another.`;
  return `The test event couldn’t be delivered. ${failed.error ?? ""}`.trim();
}
