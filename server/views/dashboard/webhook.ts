import type { z } from "zod";
import type { Webhook } from "../../../resources/webhooks/ports.ts";
import type { deliverySchema } from "../../../resources/webhooks/schema.ts";
import { type Html, html } from "../html.ts";
import { formButton, linkButton, time } from "./controls.ts";
import { deliveryLog } from "./deliveries.ts";
import { eventsOf, stateOf } from "./webhooks.ts";

type WebhookPage = {
  webhook: Webhook;
  path: string;
  /** Newest first. */
  deliveries: z.output<typeof deliverySchema>[];
  query: Record<string, string>;
  nextCursor: string | null;
  isPaid: boolean;
  csrf: string | undefined;
};

/** A webhook: what it is told of, whether it is, and what it was told. */
export function webhookPage(page: WebhookPage): { body: Html; actions: Html } {
  const { webhook, path, isPaid, csrf } = page;
  const { enabled } = webhook;
  const isWaiting = page.deliveries.some(({ status }) => status === "pending");
  return {
    actions: isPaid ? changes(page) : html``,
    body: html`${standing(page)}
<section class="panel"><dl class="facts">
<dt>Address</dt><dd>${webhook.url}</dd>
<dt>Told of</dt><dd>${eventsOf(webhook)}</dd>
<dt>State</dt><dd>${stateOf(webhook)}</dd>
<dt>Created</dt><dd>${time(webhook.createdAt)}</dd>
<dt>Secret</dt><dd><span class="soft">shown when it was made</span></dd>
</dl>
${isPaid ? html`<div class="actions">${linkButton(`${path}/rotate-secret`, "New secret", "quiet")}</div>` : html``}
</section>
<section class="group"><div class="title"><div><h2>Deliveries</h2>
<p class="intro">What it was told in the last 30 days, newest first.</p></div>
<div class="actions">${isWaiting ? linkButton(path, "Look again", "quiet") : html``}${
      isPaid && enabled ? formButton({ action: `${path}/test`, csrf, text: "Send test event" }) : html``
    }</div></div>
${deliveryLog({ ...page, mayResend: isPaid && enabled })}
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

function standing({ webhook: { enabled, disabledReason }, isPaid }: WebhookPage): Html {
  if (!isPaid) {
    return html`<p class="alert">The organization is on the Free plan: this webhook is told nothing until you upgrade.</p>`;
  }
  if (enabled) return html``;
  const reason = disabledReason
    ? `The service disabled this webhook: ${disabledReason} Enable it when the receiver is back.`
    : "This webhook is disabled: it is told nothing, and what happens meanwhile is not sent later.";
  return html`<p class="alert">${reason}</p>`;
}
