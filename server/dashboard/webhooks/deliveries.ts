import type { Context } from "koa";
import type { z } from "zod";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import { found } from "../../../resources/http/problem.ts";
import { readQuery } from "../../../resources/http/validate.ts";
import { isPaid, type Plan } from "../../../resources/plans.ts";
import {
  type deliveryDetailsSchema,
  deliveryQuery,
  toDeliveryDetailsView,
  toDeliveryView,
} from "../../../resources/webhooks/schema.ts";
import type { Delivery, Webhook } from "../../../resources/webhooks/types.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { breakable, exactTime, formButton, linkButton, panelForm } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, table } from "../../ui/table.ts";
import { pluralize } from "../../ui/text.ts";
import { actorOf, membershipOf, pathTo } from "../access.ts";
import { addForm, redisplayForm, type Show } from "../forms.ts";
import { respondToChange, sendJson, showPage } from "../responses.ts";
import type { DashboardOptions, RouteModule } from "../route.ts";
import { findWebhook, requirePlan, toHealthView, WEBHOOK, webhookIdOf, webhookPath } from "./context.ts";
import { deliveryBadge, nextAttempt, resendButton, showWebhook } from "./page.ts";

const DELIVERY = `${WEBHOOK}/deliveries/:delivery_id`;
const RESEND_FAILED = `${WEBHOOK}/deliveries/resend-failed`;

export const deliveries: RouteModule = (router, options) => {
  const { services, urls, allow } = options;
  const { webhooks } = services;
  const managers = allow(...MANAGERS);
  const toView = (delivery: Delivery) => toDeliveryView(delivery, urls.short);
  const show: Show = (ctx, error) => showWebhook(ctx, options, error);
  const showOne: Show = (ctx, error) => showDelivery(ctx, options, error);

  router.get(WEBHOOK, managers, redisplayForm(show), async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    ctx.body = toHealthView(ctx, await findWebhook(ctx, services), await webhooks.health(actorOf(ctx)));
  });

  router.get(
    `${WEBHOOK}/deliveries`,
    managers,
    readQuery(deliveryQuery),
    redisplayForm(show),
    async (ctx) => {
      if (prefersHtml(ctx)) return show(ctx);
      const log = await webhooks.deliveries(actorOf(ctx), webhookIdOf(ctx), ctx.state.query);
      ctx.body = { data: log.deliveries.map(toView), next_cursor: log.nextCursor };
    },
  );

  const sending = [managers, requirePlan] as const;

  router.post(`${WEBHOOK}/test`, ...sending, redisplayForm(show), async (ctx) => {
    const body = toView(await webhooks.test(actorOf(ctx), webhookIdOf(ctx)));
    respondToChange(ctx, { to: webhookPath(ctx), done: "webhook-tested", status: 202, body });
  });

  // Before the page of a delivery, whose path it matches.
  addForm(router, {
    path: RESEND_FAILED,
    access: sending,
    section: "webhooks",
    async render(ctx) {
      await findWebhook(ctx, services);
      const { count, hasMore } = await webhooks.countFailed(actorOf(ctx), webhookIdOf(ctx));
      return { title: "Resend failed deliveries?", body: resendForm(webhookPath(ctx), count, hasMore) };
    },
    async change(ctx) {
      const body = await webhooks.resendFailed(actorOf(ctx), webhookIdOf(ctx));
      respondToChange(ctx, { to: webhookPath(ctx), done: "deliveries-resent", status: 202, body });
    },
  });

  router.get(DELIVERY, managers, (ctx) => showOne(ctx));

  router.post(`${DELIVERY}/resend`, ...sending, redisplayForm(showOne), async (ctx) => {
    const body = toView(
      await webhooks.resend(actorOf(ctx), webhookIdOf(ctx), ctx.params.delivery_id as string),
    );
    const to = `${webhookPath(ctx)}/deliveries/${body.id}`;
    respondToChange(ctx, { to, done: "delivery-resent", status: 202, body });
  });
};

function resendForm(path: string, count: number, hasMore: boolean) {
  if (count === 0)
    return html`<p>No deliveries of this webhook have failed.</p>
<p>${linkButton(path, "Back to the webhook", "quiet")}</p>`;
  const deliveries = pluralize(count, "delivery", "deliveries");
  return panelForm(
    { action: `${path}/deliveries/resend-failed`, submit: `Resend ${deliveries}`, cancel: path },
    html`<p>${hasMore ? html`More than ${deliveries} have failed, and ${deliveries} can be resent in one step.` : html`${deliveries} ${count === 1 ? "has" : "have"} failed.`} They are sent again with the same bodies and IDs, and each counts toward the daily quota. Deliveries that are waiting keep their schedule.</p>`,
  );
}

type Details = z.output<typeof deliveryDetailsSchema>;

/** Shows a delivery, or returns it to a program; `error` says why it wasn't sent again. */
async function showDelivery(ctx: Context, options: DashboardOptions, error?: string): Promise<void> {
  const { services, urls } = options;
  const webhook = await findWebhook(ctx, services);
  const caller = actorOf(ctx);
  const details = await services.webhooks.delivery(caller, webhook.id, ctx.params.delivery_id as string);
  const delivery = toDeliveryDetailsView(details, urls.short);
  if (!prefersHtml(ctx)) return sendJson(ctx, delivery);
  const health = found((await services.webhooks.health(caller)).get(webhook.id), "webhook");
  const path = webhookPath(ctx);
  const { plan } = membershipOf(ctx);
  const { id, type, status, attempts, created_at } = delivery;
  const isOn = webhook.enabled && isPaid(plan);
  const obstacle = obstacleOf({ webhook, path, plan, planPath: pathTo(ctx, "plan") });
  const actions = html`${linkButton(path, "All deliveries", "quiet")}${obstacle ? obstacle.step : resendButton(path, delivery, { look: "primary" })}`;
  const body = html`${obstacle && html`<p class="alert">${obstacle.reason}</p>`}
<section class="panel"><dl class="facts">
<dt>Endpoint URL</dt><dd>${breakable(webhook.url)}</dd>
<dt>ID</dt><dd><code>${id}</code></dd>
<dt>Status</dt><dd data-fact="status">${deliveryBadge(delivery)}</dd>
<dt>Created</dt><dd>${exactTime(Date.parse(created_at))}</dd>
${isOn && status === "pending" && html`<dt>Next attempt</dt><dd>${nextAttempt(delivery, health)}</dd>`}
</dl></section>
<section class="group"><h2>Attempts</h2>
${attempts.length > 0 ? table("Attempts", ATTEMPTS, attempts) : html`<p class="soft">No attempts yet.</p>`}
</section>
<section class="group"><h2>Request</h2>
${requestHeaders(delivery)}
${content("Request body", JSON.stringify(delivery.request, null, 2))}
</section>
${response(delivery)}`;
  showPage(ctx, { title: `Delivery of ${type}`, section: "webhooks", error, actions, body });
}

/** `path` is that of the webhook. */
type Resending = { webhook: Webhook; path: string; plan: Plan; planPath: string };
type Obstacle = { reason: string; step: Html };

/** Returns why the delivery can't be sent again, and the step that helps. */
function obstacleOf({ webhook, path, plan, planPath }: Resending): Obstacle | undefined {
  if (!isPaid(plan)) {
    const reason = "Webhooks are paused on the Free plan. Upgrade to resend this delivery.";
    return { reason, step: linkButton(planPath, "Compare plans") };
  }
  if (!webhook.enabled) {
    const fields = { enabled: "true" };
    const why = webhook.disabledReason ? ` automatically: ${webhook.disabledReason}` : ".";
    const reason = `This webhook was disabled${why} Enable it to resend this delivery.`;
    return { reason, step: formButton({ action: path, text: "Enable webhook", look: "primary", fields }) };
  }
  if (webhook.verified) return undefined;
  const reason = "The endpoint hasn’t accepted a test event yet. Once it does, you can resend this delivery.";
  return { reason, step: formButton({ action: `${path}/test`, text: "Send test event", look: "primary" }) };
}

const ATTEMPTS: Columns<Details["attempts"][number]> = {
  Time: ({ at }) => exactTime(Date.parse(at)),
  Response: ({ status, error }) => String(status ?? error ?? "none"),
  Duration: ({ ms }) => `${ms.toLocaleString("en")} ms`,
};

const HEADERS: Columns<[name: string, value: string]> = {
  Name: ([name]) => html`<code>${name}</code>`,
  Value: ([, value]) => html`<code>${breakable(value)}</code>`,
};

function requestHeaders({ request_headers: headers, attempts }: Details): Html {
  if (headers) return table("Request headers", HEADERS, Object.entries(headers));
  const reason = attempts.length > 0 ? "The headers of this request are not stored." : "Not sent yet.";
  return html`<p class="soft">${reason}</p>`;
}

/** Renders the response to the last request. It may contain anything: it is shown as text, and no link in it works. */
function response({ response }: Details): Html {
  if (!response) return html``;
  const { status, headers, body, truncated } = response;
  return html`<section class="group"><h2>Response</h2>
<p>The response to the last request had the status ${status}.${truncated && " Only the start of its body is stored."}</p>
${Object.keys(headers).length > 0 && table("Response headers", HEADERS, Object.entries(headers))}
${body === "" ? html`<p class="soft">The body is empty.</p>` : content("Response body", body)}
</section>`;
}

function content(label: string, text: string): Html {
  return html`<h3>${label}</h3>
<pre tabindex="0" role="region" aria-label="${label}"><code>${text}</code></pre>`;
}
