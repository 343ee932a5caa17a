import type { Context } from "koa";
import { readQuery } from "../../../resources/http/query.ts";
import { pageQuery } from "../../../resources/webhooks/schema.ts";
import type { WebhookService } from "../../../resources/webhooks/service.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { actorOf, MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { respondToChange, showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { toDashboardView, WEBHOOK, WEBHOOKS, webhookIdOf, webhookPath, webhooksPath } from "./context.ts";
import { webhookDeletionForm } from "./form.ts";
import { addFormRoutes } from "./form-routes.ts";
import { webhooksPage } from "./list-page.ts";
import { addSecretRoutes, createSecretView } from "./secret-routes.ts";

/** Lists, creates, updates and deletes webhooks and rotates their secrets; `deliveries.ts` has their deliveries. */
export const webhooks: RouteModule = (router, { services, allow, oneTimeView }) => {
  const { webhooks } = services;
  const managers = allow(...MANAGERS);
  const secretView = createSecretView(oneTimeView);

  router.get(WEBHOOKS, managers, readQuery(pageQuery), async (ctx) => {
    if (prefersHtml(ctx)) return showList(ctx, webhooks);
    const { webhooks: page, nextCursor } = await webhooks.list(actorOf(ctx), ctx.state.query);
    ctx.body = { data: page.map((webhook) => toDashboardView(ctx, webhook)), next_cursor: nextCursor };
  });

  addFormRoutes(router, { webhooks, managers, secretView });
  addSecretRoutes(router, { webhooks, managers, secretView });

  router.get(`${WEBHOOK}/delete`, managers, async (ctx) => {
    const { url } = await webhooks.get(actorOf(ctx), webhookIdOf(ctx));
    const body = webhookDeletionForm({ url, path: webhookPath(ctx), csrf: signedInUserOf(ctx).csrf });
    showPage(ctx, { title: "Delete webhook?", section: "webhooks" }, body);
  });

  const remove = async (ctx: Context) => {
    await webhooks.remove(actorOf(ctx), webhookIdOf(ctx));
    respondToChange(ctx, { to: webhooksPath(ctx), done: "webhook-deleted" });
  };
  router.delete(WEBHOOK, managers, remove);
  router.post(`${WEBHOOK}/delete`, managers, remove);
};

async function showList(ctx: Context, webhooks: WebhookService): Promise<void> {
  const { id, plan } = membershipOf(ctx);
  const { webhooks: all } = await webhooks.list(actorOf(ctx), { limit: 100 });
  const { body, actions } = webhooksPage({
    path: webhooksPath(ctx),
    planPath: sectionPath(id, "plan"),
    webhooks: all,
    deliveriesToday: await webhooks.countDeliveriesToday(actorOf(ctx)),
    plan,
  });
  const intro = "Send events to your own endpoints. Requests are signed following Standard Webhooks.";
  showPage(ctx, { title: "Webhooks", intro, section: "webhooks", actions }, body);
}
