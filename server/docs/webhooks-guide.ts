import { WEBHOOK_EVENT_SCHEMAS } from "../../resources/webhooks/event-schemas.ts";
import { TIMEOUTS } from "../../resources/webhooks/send.ts";
import { type Html, html } from "../ui/html.ts";
import { table } from "../ui/table.ts";
import { schemaLink } from "./schema.ts";

/** Returns the chapter on how to receive webhooks. */
export function receivingWebhooks(): Html {
  return html`<p>Events are sent following <a href="https://www.standardwebhooks.com/">Standard Webhooks</a> 1.0.0: a POST of
<code>{"type", "timestamp", "data"}</code> with the headers <code>webhook-id</code>, <code>webhook-timestamp</code> and
<code>webhook-signature</code>. Verify the signature with the webhook’s secret; Standard Webhooks has libraries for many languages.
Delivery is at least once: a retry has the same <code>webhook-id</code>, so you can ignore duplicates.</p>
<p>Respond with 2xx within ${TIMEOUTS.totalMs / 1000} seconds. Any other response is retried for three days with increasing pauses,
and <code>Retry-After</code> is respected. A 410 response disables the webhook. While a secret is being rotated, requests are signed
with both secrets.</p>
${table(
  "Events",
  [
    {
      head: "Event",
      cell: ({ event }: (typeof WEBHOOK_EVENT_SCHEMAS)[number]) => html`<code>${event}</code>`,
    },
    { head: "Description", cell: ({ meaning }) => meaning },
    { head: "Body", cell: ({ body }) => schemaLink(body.meta()?.title ?? "") },
  ],
  [...WEBHOOK_EVENT_SCHEMAS],
)}`;
}
