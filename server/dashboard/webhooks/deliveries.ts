import type { Context } from "koa";
import { readQuery } from "../../resources/query.ts";
import { toMessage } from "../../resources/webhooks/message.ts";
import type { Delivery } from "../../resources/webhooks/ports.ts";
import { pageQuery, toDeliveryView } from "../../resources/webhooks/schema.ts";
import { statusOf } from "../../resources/webhooks/status.ts";
import { prefersHtml } from "../people/input.ts";
import { webhookPage } from "../views/dashboard/webhook.ts";
import { actorOf, MANAGERS, membershipOf, personOf } from "./access.ts";
import { again, answerDone, type Show, showPage } from "./answers.ts";
import type { Subject } from "./subject.ts";
import { pathOf, requirePlan, showWebhook, WEBHOOK, webhookIdOf } from "./webhooks.ts";

/** What a webhook was told: the page of a webhook with its log, test events, and what is sent again. */
export const deliveries: Subject = (router, { cores, addresses, allow }) => {
  const { webhooks } = cores;
  const managers = allow(...MANAGERS);
  const view = (delivery: Delivery) => toDeliveryView(delivery, toMessage(delivery.event, addresses.short));

  const show: Show = async (ctx, error) => {
    const actor = actorOf(ctx);
    const webhook = await webhooks.get(actor, webhookIdOf(ctx));
    const { cursor } = ctx.query;
    const asked = error || cursor === undefined ? {} : { cursor };
    const log = await webhooks.deliveries(actor, webhook.id, asked);
    const { plan } = membershipOf(ctx);
    const isFailing = statusOf(webhook, plan) === "failing";
    const { body, actions } = webhookPage({
      webhook,
      path: pathOf(ctx),
      deliveries: log.deliveries.map(view),
      query: asked as Record<string, string>,
      nextCursor: log.nextCursor,
      nextAttemptAt: isFailing ? await webhooks.nextAttemptAt(actor, webhook.id) : null,
      plan,
      csrf: personOf(ctx).csrf,
    });
    showPage(ctx, { title: new URL(webhook.url).host, section: "webhooks", error, actions }, body);
  };

  router.get(WEBHOOK, managers, again(show), async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    ctx.body = showWebhook(ctx, await webhooks.get(actorOf(ctx), webhookIdOf(ctx)));
  });

  router.get(`${WEBHOOK}/deliveries`, managers, readQuery(pageQuery), again(show), async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    const found = await webhooks.deliveries(actorOf(ctx), webhookIdOf(ctx), ctx.state.query);
    ctx.body = { data: found.deliveries.map(view), next_cursor: found.nextCursor };
  });

  router.post(`${WEBHOOK}/test`, managers, requirePlan, again(show), async (ctx) => {
    const delivery = await webhooks.test(actorOf(ctx), webhookIdOf(ctx));
    answerSent(ctx, delivery, "webhook-tested");
  });

  router.post(
    `${WEBHOOK}/deliveries/:delivery_id/resend`,
    managers,
    requirePlan,
    again(show),
    async (ctx) => {
      const id = ctx.params.delivery_id as string;
      const delivery = await webhooks.resend(actorOf(ctx), webhookIdOf(ctx), id);
      answerSent(ctx, delivery, "delivery-resent");
    },
  );

  function answerSent(ctx: Context, delivery: Delivery, done: "webhook-tested" | "delivery-resent") {
    answerDone(ctx, { to: pathOf(ctx), done, status: 202, body: view(delivery) });
  }
};
