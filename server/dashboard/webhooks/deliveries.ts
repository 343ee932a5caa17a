import { pageQuery } from "../../../resources/http/pagination.ts";
import { readQuery } from "../../../resources/http/validate.ts";
import { toDeliveryView } from "../../../resources/webhooks/schema.ts";
import type { Delivery } from "../../../resources/webhooks/types.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { actorOf, MANAGERS, membershipOf } from "../access.ts";
import { creatorOf } from "../creator.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { requirePlan, statusOf, toDashboardView, WEBHOOK, webhookIdOf, webhookPath } from "./context.ts";
import { webhookPage } from "./page.ts";

export const deliveries: RouteModule = (router, { services, storage, urls, allow }) => {
  const { webhooks } = services;
  const managers = allow(...MANAGERS);
  const toView = (delivery: Delivery) => toDeliveryView(delivery, urls.short);

  const show: Show = async (ctx, error) => {
    const caller = actorOf(ctx);
    const webhook = await webhooks.get(caller, webhookIdOf(ctx));
    const { cursor } = ctx.query;
    const query = error || cursor === undefined ? {} : { cursor };
    const log = await webhooks.deliveries(caller, webhook.id, query);
    const { plan } = membershipOf(ctx);
    const isRetried = ["failing", "unverified"].includes(statusOf(webhook, plan));
    const next = isRetried ? await webhooks.nextDelivery(caller, webhook.id) : undefined;
    const failed = [next ?? [], log.deliveries]
      .flat()
      .find(({ event, attempts }) => event.type === "webhook.test" && attempts.length > 0);
    const content = webhookPage({
      webhook,
      creator: await creatorOf(storage, webhook.organizationId, webhook),
      path: webhookPath(ctx),
      deliveries: log.deliveries.map(toView),
      query: query as Record<string, string>,
      nextCursor: log.nextCursor,
      nextAttemptAt: next?.nextAttemptAt ?? null,
      // A new endpoint hasn't failed yet, unlike those before it in the log.
      failedTest: webhook.failingSince === null ? undefined : failed?.attempts.at(-1),
      plan,
    });
    // The path may be a secret, and the title of a page ends up in the browser's history.
    const { host, pathname, search } = new URL(webhook.url);
    const heading = pathname + search === "/" ? host : host + pathname + search;
    showPage(ctx, { title: host, heading, section: "webhooks", error, ...content });
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

  const sending = [managers, requirePlan, redisplayForm(show)] as const;

  router.post(`${WEBHOOK}/test`, ...sending, async (ctx) => {
    const body = toView(await webhooks.test(actorOf(ctx), webhookIdOf(ctx)));
    respondToChange(ctx, { to: webhookPath(ctx), done: "webhook-tested", status: 202, body });
  });

  router.post(`${WEBHOOK}/deliveries/:delivery_id/resend`, ...sending, async (ctx) => {
    const id = ctx.params.delivery_id as string;
    const body = toView(await webhooks.resend(actorOf(ctx), webhookIdOf(ctx), id));
    respondToChange(ctx, { to: webhookPath(ctx), done: "delivery-resent", status: 202, body });
  });
};
