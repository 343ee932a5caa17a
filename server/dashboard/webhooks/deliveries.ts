import { MANAGERS } from "../../../resources/access/scopes.ts";
import { readQuery } from "../../../resources/http/validate.ts";
import { deliveryQuery, toDeliveryView } from "../../../resources/webhooks/schema.ts";
import type { Delivery } from "../../../resources/webhooks/types.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { linkButton, panelForm } from "../../ui/controls.ts";
import { html } from "../../ui/html.ts";
import { pluralize } from "../../ui/text.ts";
import { actorOf } from "../access.ts";
import { addForm, redisplayForm, type Show } from "../forms.ts";
import { respondToChange } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { findWebhook, requirePlan, toHealthView, WEBHOOK, webhookIdOf, webhookPath } from "./context.ts";
import { showDelivery } from "./delivery-page.ts";
import { showWebhook } from "./page.ts";

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
