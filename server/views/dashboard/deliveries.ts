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
  mayResend: boolean;
  csrf: string | undefined;
};

const KINDS = { succeeded: "good", pending: "neutral", failed: "warn" } as const;

/** What was sent, each to be opened for the request and every attempt. */
export function deliveryLog({ path, deliveries, query, nextCursor, mayResend, csrf }: DeliveryLog): Html {
  if (deliveries.length === 0) {
    return emptyState("Nothing was sent yet", "Send a test event, and see here what became of it.");
  }
  return html`<ol class="deliveries">${deliveries.map(
    (delivery) => html`<li><details><summary class="delivery">${headOf(delivery)}</summary>
<div class="opened">${delivery.attempts.length > 0 ? table("Attempts", COLUMNS, delivery.attempts) : html`<p class="soft">There was no attempt yet.</p>`}
${next(delivery)}
<h3>Request</h3>
<pre tabindex="0" role="region" aria-label="Request of ${delivery.id}"><code>${JSON.stringify(delivery.request, null, 2)}</code></pre>
${
  mayResend
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

function headOf({ type, status, attempts, created_at }: Delivery): Html {
  const last = attempts.at(-1);
  const answer = last?.status ?? last?.error;
  return html`${badge(status, KINDS[status])} <strong>${type}</strong> <span class="soft">${time(Date.parse(created_at))}</span>${
    answer === undefined ? html`` : html` <span class="soft">${answer}</span>`
  }`;
}

function next({ next_attempt_at }: Delivery): Html {
  if (next_attempt_at === null) return html``;
  return html`<p class="soft">The next attempt is due at ${time(Date.parse(next_attempt_at))}.</p>`;
}
