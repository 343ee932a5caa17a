import type { Context } from "koa";
import { readQuery } from "../../../resources/http/query.ts";
import { toPayload } from "../../../resources/webhooks/payload.ts";
import { pageQuery, toDeliveryView } from "../../../resources/webhooks/schema.ts";
import { statusOf } from "../../../resources/webhooks/status.ts";
import type { Delivery } from "../../../resources/webhooks/types.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { actorOf, MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { creatorOf } from "../creator.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { requirePlan, toDashboardView, WEBHOOK, webhookIdOf, webhookPath } from "./context.ts";
import { webhookPage } from "./page.ts";

/** The page of a webhook with its deliveries, test events and resends. */
export const deliveries: RouteModule = (router, { services, storage, urls, allow }) => {
  const { webhooks } = services;
  const managers = allow(...MANAGERS);
  const toView = (delivery: Delivery) => toDeliveryView(delivery, toPayload(delivery.event, urls.short));

  const show: Show = async (ctx, error) => {
    const caller = actorOf(ctx);
    const webhook = await webhooks.get(caller, webhookIdOf(ctx));
    const { cursor } = ctx.query;
    const query = error || cursor === undefined ? {} : { cursor };
    const log = await webhooks.deliveries(caller, webhook.id, query);
    const { plan } = membershipOf(ctx);
    const isRetried = ["failing", "unverified"].includes(statusOf(webhook, plan));
    const { body, actions } = webhookPage({
      webhook,
      creator: await creatorOf(storage, webhook.organizationId, webhook),
      path: webhookPath(ctx),
      deliveries: log.deliveries.map(toView),
      query: query as Record<string, string>,
      nextCursor: log.nextCursor,
      nextAttemptAt: isRetried ? await webhooks.nextAttemptAt(caller, webhook.id) : null,
      plan,
      csrf: signedInUserOf(ctx).csrf,
    });
    showPage(ctx, { title: new URL(webhook.url).host, section: "webhooks", error, actions }, body);
  };

  router.get(WEBHOOK, managers, redisplayForm(show), async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    ctx.body = toDashboardView(ctx, await webhooks.get(actorOf(ctx), webhookIdOf(ctx)));
  });

  router.get(`${WEBHOOK}/deliveries`, managers, readQuery(pageQuery), redisplayForm(show), async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    const found = await webhooks.deliveries(actorOf(ctx), webhookIdOf(ctx), ctx.state.query);
    ctx.body = { data: found.deliveries.map(toView), next_cursor: found.nextCursor };
  });

  router.post(`${WEBHOOK}/test`, managers, requirePlan, redisplayForm(show), async (ctx) => {
    const delivery = await webhooks.test(actorOf(ctx), webhookIdOf(ctx));
    respondQueued(ctx, delivery, "webhook-tested");
  });

  router.post(
    `${WEBHOOK}/deliveries/:delivery_id/resend`,
    managers,
    requirePlan,
    redisplayForm(show),
    async (ctx) => {
      const id = ctx.params.delivery_id as string;
      const delivery = await webhooks.resend(actorOf(ctx), webhookIdOf(ctx), id);
      respondQueued(ctx, delivery, "delivery-resent");
    },
  );

  function respondQueued(ctx: Context, delivery: Delivery, done: "webhook-tested" | "delivery-resent") {
    respondToChange(ctx, { to: webhookPath(ctx), done, status: 202, body: toView(delivery) });
  }
};
