import type { z } from "zod";
import type { deliverySchema } from "../../../resources/webhooks/schema.ts";
import { badge, formButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Column, emptyState, pagination, table } from "../../ui/table.ts";

type Delivery = z.output<typeof deliverySchema>;
type Attempt = Delivery["attempts"][number];

type DeliveryLog = {
  path: string;
  deliveries: Delivery[];
  query: Record<string, string>;
  nextCursor: string | null;
  /** Whether events are sent: the webhook is enabled and the plan is paid. */
  isOn: boolean;
  mayResend: boolean;
  csrf: string | undefined;
};

/** Renders the deliveries; each expands to show its request and all attempts. */
export function deliveryLog({
  path,
  deliveries,
  query,
  nextCursor,
  isOn,
  mayResend,
  csrf,
}: DeliveryLog): Html {
  if (deliveries.length === 0) {
    return emptyState("No deliveries yet", "Send a test event to see its delivery here.");
  }
  return html`<ol class="deliveries">${deliveries.map(
    (delivery) => html`<li><details><summary class="delivery">${summaryOf(delivery, isOn)}</summary>
<div class="opened">${delivery.attempts.length > 0 ? table("Attempts", COLUMNS, delivery.attempts) : html`<p class="soft">No attempts yet.</p>`}
<h3>Request</h3>
<pre tabindex="0" role="region" aria-label="Request of ${delivery.id}"><code>${JSON.stringify(delivery.request, null, 2)}</code></pre>
${
  mayResend
    ? formButton({
        action: `${path}/deliveries/${delivery.id}/resend`,
        csrf,
        text: "Resend",
        about: `${delivery.type} from ${delivery.created_at.slice(0, 16)}`,
      })
    : html``
}</div></details></li>
`,
  )}</ol>
${pagination(path, query, nextCursor)}`;
}

const COLUMNS: Column<Attempt>[] = [
  { head: "Time", cell: ({ at }) => time(Date.parse(at)) },
  { head: "Response", cell: ({ status, error }) => (status === undefined ? (error ?? "none") : `${status}`) },
  { head: "Duration", cell: ({ ms }) => `${ms.toLocaleString("en")} ms` },
];

function summaryOf(delivery: Delivery, isOn: boolean): Html {
  const { type, attempts, created_at } = delivery;
  const last = attempts.at(-1);
  const response = last?.status ?? last?.error;
  return html`${statusBadge(delivery)} <strong>${type}</strong> <span class="soft">${time(Date.parse(created_at))}</span>${
    response === undefined ? html`` : html` <span class="soft">${response}</span>`
  }${isOn ? nextAttempt(delivery) : html``}`;
}

function statusBadge(delivery: Delivery): Html {
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
