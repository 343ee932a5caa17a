import type { Context } from "koa";
import type { Caller } from "../../../resources/access/actor.ts";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import { found } from "../../../resources/http/problem.ts";
import { readQuery } from "../../../resources/http/validate.ts";
import { deliveryQuery, toDeliveryDetailsView, toDeliveryView } from "../../../resources/webhooks/schema.ts";
import type { Delivery, Webhook } from "../../../resources/webhooks/types.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { linkButton, panelForm, pluralize } from "../../ui/controls.ts";
import { html } from "../../ui/html.ts";
import { actorOf, membershipOf, pathTo } from "../access.ts";
import { creatorOf } from "../creator.ts";
import { addForm, redisplayForm, type Show } from "../forms.ts";
import { respondToChange, sendJson, showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { isRetried, requirePlan, toHealthView, WEBHOOK, webhookIdOf, webhookPath } from "./context.ts";
import { deliveryPage } from "./delivery-page.ts";
import { webhookPage } from "./page.ts";

const DELIVERY = `${WEBHOOK}/deliveries/:delivery_id`;
const RESEND_FAILED = `${WEBHOOK}/deliveries/resend-failed`;

export const deliveries: RouteModule = (router, { services, storage, urls, allow }) => {
  const { webhooks } = services;
  const managers = allow(...MANAGERS);
  const toView = (delivery: Delivery) => toDeliveryView(delivery, urls.short);
  const find = (ctx: Context) => webhooks.get(actorOf(ctx), webhookIdOf(ctx));
  const healthOf = async (caller: Caller, { id }: Webhook) =>
    found((await webhooks.health(caller)).get(id), "webhook");

  const show: Show = async (ctx, error) => {
    const caller = actorOf(ctx);
    const webhook = await find(ctx);
    const query = error ? {} : filterOf(ctx);
    const log = await webhooks.deliveries(caller, webhook.id, query);
    const { plan } = membershipOf(ctx);
    const next = isRetried(webhook, plan) ? await webhooks.nextDelivery(caller, webhook.id) : undefined;
    const known = next ? [next, ...log.deliveries] : log.deliveries;
    const test = known.find(({ event, attempts }) => event.type === "webhook.test" && attempts.length > 0);
    const { failingSince } = webhook;
    const failedAttempts = known
      .flatMap(({ attempts }) => attempts)
      .filter(({ at }) => failingSince !== null && at >= failingSince)
      .sort((one, other) => one.at - other.at);
    const content = webhookPage({
      webhook,
      creator: await creatorOf(storage, webhook.organizationId, webhook),
      health: await healthOf(caller, webhook),
      path: webhookPath(ctx),
      deliveries: log.deliveries.map(toView),
      query,
      nextCursor: log.nextCursor,
      failedAttempt: failedAttempts.at(-1),
      // A new endpoint hasn't failed yet, unlike those before it in the log.
      failedTest: failingSince === null ? undefined : test?.attempts.at(-1),
      plan,
    });
    showPage(ctx, { ...titleOf(webhook), section: "webhooks", error, ...content });
  };

  const showDelivery: Show = async (ctx, error) => {
    const webhook = await find(ctx);
    const details = await webhooks.delivery(actorOf(ctx), webhook.id, deliveryIdOf(ctx));
    const delivery = toDeliveryDetailsView(details, urls.short);
    if (!prefersHtml(ctx)) return sendJson(ctx, delivery);
    const content = deliveryPage({
      webhook,
      health: await healthOf(actorOf(ctx), webhook),
      path: webhookPath(ctx),
      delivery,
      plan: membershipOf(ctx).plan,
      planPath: pathTo(ctx, "plan"),
    });
    showPage(ctx, { title: `Delivery of ${delivery.type}`, section: "webhooks", error, ...content });
  };

  router.get(WEBHOOK, managers, redisplayForm(show), async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    ctx.body = toHealthView(ctx, await find(ctx), await webhooks.health(actorOf(ctx)));
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
      await find(ctx);
      const { count, hasMore } = await webhooks.countFailed(actorOf(ctx), webhookIdOf(ctx));
      return { title: "Resend failed deliveries?", body: resendForm(webhookPath(ctx), count, hasMore) };
    },
    async change(ctx) {
      const body = await webhooks.resendFailed(actorOf(ctx), webhookIdOf(ctx));
      respondToChange(ctx, { to: webhookPath(ctx), done: "deliveries-resent", status: 202, body });
    },
  });

  router.get(DELIVERY, managers, (ctx) => showDelivery(ctx));

  router.post(`${DELIVERY}/resend`, ...sending, redisplayForm(showDelivery), async (ctx) => {
    const body = toView(await webhooks.resend(actorOf(ctx), webhookIdOf(ctx), deliveryIdOf(ctx)));
    const to = `${webhookPath(ctx)}/deliveries/${body.id}`;
    respondToChange(ctx, { to, done: "delivery-resent", status: 202, body });
  });
};

function deliveryIdOf(ctx: Context): string {
  return ctx.params.delivery_id as string;
}

function filterOf({ query }: Context) {
  const { cursor, status, event_type } = query as Record<string, string | undefined>;
  return { ...(cursor && { cursor }), ...(status && { status }), ...(event_type && { event_type }) };
}

/** The path may be a secret, and the title of a page ends up in the browser's history. */
function titleOf({ url }: Webhook) {
  const { host, pathname, search } = new URL(url);
  return { title: host, heading: pathname + search === "/" ? host : host + pathname + search };
}

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
