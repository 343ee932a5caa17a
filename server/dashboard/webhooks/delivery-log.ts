import type { z } from "zod";
import type { deliverySchema } from "../../../resources/webhooks/schema.ts";
import { type Html, html } from "../html.ts";
import { badge, formButton, time } from "./controls.ts";
import { type Column, emptyState, pagination, table } from "./table.ts";

type Delivery = z.output<typeof deliverySchema>;
type Attempt = Delivery["attempts"][number];

type DeliveryLog = {
  path: string;
  deliveries: Delivery[];
  query: Record<string, string>;
  nextCursor: string | null;
  /** Whether the webhook is sent anything: enabled, on a paid plan. */
  isOn: boolean;
  csrf: string | undefined;
};

/** What was sent, each to be opened for the request and every attempt. */
export function deliveryLog({ path, deliveries, query, nextCursor, isOn, csrf }: DeliveryLog): Html {
  if (deliveries.length === 0) {
    return emptyState("Nothing was sent yet", "Send a test event, and see here what became of it.");
  }
  return html`<ol class="deliveries">${deliveries.map(
    (delivery) => html`<li><details><summary class="delivery">${headOf(delivery, isOn)}</summary>
<div class="opened">${delivery.attempts.length > 0 ? table("Attempts", COLUMNS, delivery.attempts) : html`<p class="soft">There was no attempt yet.</p>`}
<h3>Request</h3>
<pre tabindex="0" role="region" aria-label="Request of ${delivery.id}"><code>${JSON.stringify(delivery.request, null, 2)}</code></pre>
${
  isOn
    ? formButton({
        action: `${path}/deliveries/${delivery.id}/resend`,
        csrf,
        text: "Send again",
        about: `${delivery.type} of ${delivery.created_at.slice(0, 16)}`,
      })
    : html``
}</div></details></li>
`,
  )}</ol>
${pagination(path, query, nextCursor)}`;
}

const COLUMNS: Column<Attempt>[] = [
  { head: "Attempt", cell: ({ at }) => time(Date.parse(at)) },
  { head: "Answer", cell: ({ status, error }) => (status === undefined ? (error ?? "none") : `${status}`) },
  { head: "Took", cell: ({ ms }) => `${ms.toLocaleString("en")} ms` },
];

function headOf(delivery: Delivery, isOn: boolean): Html {
  const { type, attempts, created_at } = delivery;
  const last = attempts.at(-1);
  const answer = last?.status ?? last?.error;
  return html`${statusBadge(delivery)} <strong>${type}</strong> <span class="soft">${time(Date.parse(created_at))}</span>${
    answer === undefined ? html`` : html` <span class="soft">${answer}</span>`
  }${isOn ? retry(delivery) : html``}`;
}

function statusBadge(delivery: Delivery): Html {
  if (delivery.status === "succeeded") return badge("Delivered", "good");
  return hasFailed(delivery) ? badge("Failed", "bad") : badge("Pending");
}

function retry(delivery: Delivery): Html {
  const { status, next_attempt_at: at } = delivery;
  if (status !== "pending" || at === null || !hasFailed(delivery)) return html``;
  return html` <span class="bad">Retrying at ${time(Date.parse(at))}</span>`;
}

/** Whether the last attempt failed; a delivery that is resent may have succeeded before. */
function hasFailed({ status, attempts }: Delivery): boolean {
  if (status !== "pending") return status === "failed";
  const last = attempts.at(-1);
  return last !== undefined && !(last.status !== undefined && last.status >= 200 && last.status < 300);
}
