import type { z } from "zod";
import type { deliverySchema } from "../../../resources/webhooks/schema.ts";
import type { Webhook, WebhookHealth } from "../../../resources/webhooks/types.ts";
import { badge, breakable, exactTime, formButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, emptyState, pagination, table } from "../../ui/table.ts";

export type ShownDelivery = z.output<typeof deliverySchema>;

export type DeliveryList = {
  webhook: Webhook;
  health: WebhookHealth;
  /** That of the webhook. */
  path: string;
  /** Newest first. */
  deliveries: ShownDelivery[];
  query: { cursor?: string; status?: string; event_type?: string };
  nextCursor: string | null;
  /** Whether events are sent. */
  isOn: boolean;
  canResend: boolean;
};

const STATUSES: [status: string, name: string][] = [
  ["", "All"],
  ["succeeded", "Delivered"],
  ["failed", "Failed"],
  ["pending", "Waiting or retrying"],
];

/** Renders the filters of a webhook's deliveries, and a page of those that match. */
export function deliveryList(list: DeliveryList): Html {
  const { path, deliveries, query, nextCursor } = list;
  const isFiltered = Boolean(query.status || query.event_type);
  if (deliveries.length === 0 && !isFiltered && !query.cursor)
    return emptyState("No deliveries yet", "Send a test event to see its delivery here.");
  const matches =
    deliveries.length > 0
      ? html`<div class="dense">${table("Deliveries", columnsOf(list), deliveries, list.canResend ? resendOf(list) : undefined)}</div>`
      : emptyState("No deliveries found", "", linkButton(path, "Clear filters", "quiet"));
  return html`${filters(list)}
${matches}
${pagination({ path, query, nextCursor })}`;
}

function filters({ webhook, path, query }: DeliveryList): Html {
  const { status = "", event_type: type = "" } = query;
  // Deliveries of an event that the webhook subscribed to before are found by its name in the URL.
  const types = new Set([...webhook.events, "webhook.test", ...(type ? [type] : [])]);
  const events = [...types].sort().map((event): [string, string] => [event, event]);
  return html`${filterLinks("Status", STATUSES, status, (value) => addressOf(path, value, type))}
${filterLinks("Event", [["", "All events"], ...events], type, (value) => addressOf(path, status, value))}`;
}

function filterLinks(
  label: string,
  options: [value: string, name: string][],
  current: string,
  hrefOf: (value: string) => string,
): Html {
  return html`<nav class="tabs" aria-label="${label}"><ul>
${options.map(
  ([
    value,
    name,
  ]) => html`<li><a href="${hrefOf(value)}"${value === current && html` aria-current="page"`}>${name}</a></li>
`,
)}</ul></nav>`;
}

function addressOf(path: string, status: string, type: string): string {
  const query = new URLSearchParams({ ...(status && { status }), ...(type && { event_type: type }) });
  return query.size > 0 ? `${path}?${query}` : path;
}

function columnsOf({ path, isOn, health }: DeliveryList): Columns<ShownDelivery> {
  return {
    Event: ({ id, type, created_at, request: { data } }) =>
      html`<a href="${path}/deliveries/${id}">${type}<span class="visually-hidden"> at ${created_at}</span></a>${
        "slug" in data && html` <span class="soft">/${breakable(String(data.slug))}</span>`
      }`,
    Status: deliveryBadge,
    Response: ({ attempts }) => String(attempts.at(-1)?.status ?? attempts.at(-1)?.error ?? ""),
    Created: ({ created_at }) => exactTime(Date.parse(created_at)),
    "Next attempt": (delivery) => (isOn ? nextAttempt(delivery, health) : ""),
  };
}

/** What succeeded is resent from its page: the list is for what still has to arrive. */
function resendOf({ path }: DeliveryList): (delivery: ShownDelivery) => Html | string {
  return (delivery) => {
    const about = `${delivery.type} at ${delivery.created_at}`;
    return delivery.status === "succeeded" ? "" : resendButton(path, delivery, { about });
  };
}

/** Renders the button that sends a delivery again, or one that is waiting before its time. */
export function resendButton(
  path: string,
  { id, status }: ShownDelivery,
  looks: { look?: "primary"; about?: string },
): Html {
  const text = status === "pending" ? "Send now" : "Resend";
  return formButton({ action: `${path}/deliveries/${id}/resend`, text, ...looks });
}

/** The names are those of the filter, and one for what is retried. */
export function deliveryBadge(delivery: ShownDelivery): Html {
  if (delivery.status === "succeeded") return badge("Delivered", "good");
  if (delivery.status === "failed") return badge("Failed", "bad");
  return lastAttemptFailed(delivery) ? badge("Retrying", "warn") : badge("Waiting");
}

/** Renders when a delivery is attempted next: when it is due and no pause holds it back. */
export function nextAttempt(
  { status, next_attempt_at: due }: ShownDelivery,
  { blockedUntil, pausedUntil }: WebhookHealth,
): Html {
  if (status !== "pending") return html``;
  if (due === null) return html`once the endpoint is verified`;
  const at = Math.max(Date.parse(due), blockedUntil ?? 0, pausedUntil ?? 0);
  return at <= Date.now() ? html`now` : exactTime(at);
}

/** The last attempt of a resent delivery may have succeeded. */
function lastAttemptFailed({ attempts }: ShownDelivery): boolean {
  const last = attempts.at(-1);
  return last !== undefined && !(last.status !== undefined && last.status >= 200 && last.status < 300);
}
