import type { Context } from "koa";
import type { z } from "zod";
import { found } from "../../../resources/http/problem.ts";
import { isPaid } from "../../../resources/plans.ts";
import { type deliverySchema, toDeliveryView } from "../../../resources/webhooks/schema.ts";
import type { Attempt, Webhook, WebhookHealth } from "../../../resources/webhooks/types.ts";
import {
  badge,
  breakable,
  day,
  exactTime,
  formButton,
  linkButton,
  time,
  timeOrNow,
} from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, emptyState, pagination, pathWith, table, tabs } from "../../ui/table.ts";
import { actorOf, membershipOf } from "../access.ts";
import { creatorOf } from "../creator.ts";
import { showPage } from "../responses.ts";
import type { DashboardOptions } from "../route.ts";
import {
  canResend,
  eventsOf,
  findWebhook,
  isRetried,
  recentDeliveries,
  statusFact,
  statusOf,
  webhookPath,
} from "./context.ts";

type ShownDelivery = z.output<typeof deliverySchema>;
type Query = { cursor?: string; status?: string; event_type?: string };
type WebhookPage = Awaited<ReturnType<typeof readPage>>;

/** Shows a webhook with the deliveries that match the filter; `error` says why a form of the page was rejected. */
export async function showWebhook(ctx: Context, options: DashboardOptions, error?: string): Promise<void> {
  const page = await readPage(ctx, options, error ? {} : filterOf(ctx));
  const { webhook, path, plan } = page;
  const mayChange = isPaid(plan);
  const isOn = mayChange && webhook.enabled;
  const mayResend = canResend(webhook, plan);
  const has = (wanted: string) => page.deliveries.some(({ status }) => status === wanted);
  const body = html`${statusAlert(page)}
<section class="panel"><dl class="facts">
<dt>Endpoint URL</dt><dd>${webhook.url}</dd>
<dt>Events</dt><dd>${eventsOf(webhook)}</dd>
<dt>Status</dt><dd data-fact="status">${statusFact(webhook, plan)}</dd>
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
    mayResend && has("failed") && linkButton(`${path}/deliveries/resend-failed`, "Resend all failed", "quiet")
  }${isOn && formButton({ action: `${path}/test`, text: "Send test event" })}</div></div>
${deliveryList(page, isOn)}
</section>
<p>${linkButton(`${path}/delete`, "Delete webhook", "danger")}</p>`;
  const actions = mayChange ? buttons(page) : undefined;
  showPage(ctx, { ...titleOf(webhook), section: "webhooks", error, actions, body });
}

async function readPage(ctx: Context, { services, storage, urls }: DashboardOptions, query: Query) {
  const { webhooks } = services;
  const caller = actorOf(ctx);
  const { plan } = membershipOf(ctx);
  const webhook = await findWebhook(ctx, services);
  const { deliveries, nextCursor } = await webhooks.deliveries(caller, webhook.id, query);
  const next = isRetried(webhook, plan) ? await webhooks.nextDelivery(caller, webhook.id) : undefined;
  const known = next ? [next, ...deliveries] : deliveries;
  const test = known.find(({ event, attempts }) => event.type === "webhook.test" && attempts.length > 0);
  const { failingSince } = webhook;
  const failedAttempts = known
    .flatMap(({ attempts }) => attempts)
    .filter(({ at }) => failingSince !== null && at >= failingSince)
    .sort((one, other) => one.at - other.at);
  return {
    webhook,
    creator: await creatorOf(storage, webhook.organizationId, webhook),
    health: found((await webhooks.health(caller)).get(webhook.id), "webhook"),
    path: webhookPath(ctx),
    plan,
    deliveries: deliveries.map((delivery) => toDeliveryView(delivery, urls.short)),
    query,
    nextCursor,
    /** A failed attempt of a failing webhook, if the log has one here. */
    failedAttempt: failedAttempts.at(-1),
    // A new endpoint hasn't failed yet, unlike those before it in the log.
    failedTest: failingSince === null ? undefined : test?.attempts.at(-1),
  };
}

function filterOf({ query }: Context): Query {
  const { cursor, status, event_type } = query as Record<string, string | undefined>;
  return { ...(cursor && { cursor }), ...(status && { status }), ...(event_type && { event_type }) };
}

/** The path may be a secret, and the title of a page ends up in the browser's history. */
function titleOf({ url }: Webhook) {
  const { host, pathname, search } = new URL(url);
  return { title: host, heading: pathname + search === "/" ? host : host + pathname + search };
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
  if (!isPaid(plan))
    return html`<p class="alert">Webhooks are paused on the Free plan. Upgrade to Growth or Premium to resume them.</p>`;
  const { nextAttemptAt } = health;
  const next = nextAttemptAt === null ? html`` : html` Next attempt: ${timeOrNow(nextAttemptAt)}.`;
  if (status === "unverified") {
    return html`<p class="alert${failedTest ? " bad" : ""}">${verificationState(failedTest)} Other events are sent once your endpoint responds with 2xx.${
      nextAttemptAt === null && failedTest?.status === undefined
        ? html` Send another test event when it is ready.`
        : next
    }</p>`;
  }
  if (status === "failing")
    return html`<p class="alert bad">Deliveries to this webhook have been failing since ${time(webhook.failingSince)}.${responseOf(failedAttempt)}${pauseOf(health) ?? next}</p>`;
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
    return `Your endpoint answered the test event with ${failed.status}. Fix the endpoint, then send another.`;
  return `The test event couldn’t be delivered. ${failed.error ?? ""}`.trim();
}

const STATUSES: [status: string, name: string][] = [
  ["", "All"],
  ["succeeded", "Delivered"],
  ["failed", "Failed"],
  ["pending", "Waiting or retrying"],
];

/** Renders the filters of a webhook's deliveries, and a page of those that match; `isOn` says whether events are sent. */
function deliveryList(page: WebhookPage, isOn: boolean): Html {
  const { webhook, path, deliveries, query, nextCursor, plan } = page;
  const isFiltered = Boolean(query.status || query.event_type);
  if (deliveries.length === 0 && !isFiltered && !query.cursor)
    return emptyState("No deliveries yet", "Send a test event to see its delivery here.");
  const actions = canResend(webhook, plan) ? resendOf(path) : undefined;
  const matches =
    deliveries.length > 0
      ? html`<div class="dense">${table("Deliveries", columnsOf(page, isOn), deliveries, actions)}</div>`
      : emptyState("No deliveries found", "", linkButton(path, "Clear filters", "quiet"));
  return html`${filters(page)}
${matches}
${pagination({ path, query, nextCursor })}`;
}

function filters({ webhook, path, query }: WebhookPage): Html {
  const { status = "", event_type = "" } = query;
  // Deliveries of an event that the webhook subscribed to before are found by its name in the URL.
  const types = new Set([...webhook.events, "webhook.test", ...(event_type ? [event_type] : [])]);
  const events = [["", "All events"], ...[...types].sort().map((type) => [type, type])];
  const statusTabs = STATUSES.map(([value, name]) => ({
    name,
    href: pathWith(path, { status: value, event_type }),
    isCurrent: value === status,
  }));
  const eventTabs = events.map(([value = "", name = ""]) => ({
    name,
    href: pathWith(path, { status, event_type: value }),
    isCurrent: value === event_type,
  }));
  return html`${tabs("Status", statusTabs)}
${tabs("Event", eventTabs)}`;
}

function columnsOf({ path, health }: WebhookPage, isOn: boolean): Columns<ShownDelivery> {
  return {
    Event: ({ id, type, created_at, request: { data } }) =>
      html`<a href="${path}/deliveries/${id}">${type}<span class="visually-hidden"> at ${created_at}</span></a>${
        "slug" in data && html` <span class="soft">/${breakable(String(data.slug))}</span>`
      }`,
    Status: deliveryBadge,
    Response: ({ attempts }) => String(attempts.at(-1)?.status ?? attempts.at(-1)?.error ?? ""),
    Created: ({ created_at }) => day(Date.parse(created_at)),
    "Next attempt": (delivery) => (isOn ? nextAttempt(delivery, health, day) : ""),
  };
}

/** What succeeded is resent from its page: the list is for what still has to arrive. */
function resendOf(path: string): (delivery: ShownDelivery) => Html | string {
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
  render = exactTime,
): Html {
  if (status !== "pending") return html``;
  if (due === null) return html`once the endpoint is verified`;
  const at = Math.max(Date.parse(due), blockedUntil ?? 0, pausedUntil ?? 0);
  return at <= Date.now() ? html`now` : render(at);
}

/** The last attempt of a resent delivery may have succeeded. */
function lastAttemptFailed({ attempts }: ShownDelivery): boolean {
  const last = attempts.at(-1);
  return last !== undefined && !(last.status !== undefined && last.status >= 200 && last.status < 300);
}
