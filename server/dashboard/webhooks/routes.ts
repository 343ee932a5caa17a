import { MANAGERS } from "../../../resources/access/scopes.ts";
import { pageQuery } from "../../../resources/http/pagination.ts";
import { readQuery } from "../../../resources/http/validate.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { formButton, linkButton } from "../../ui/controls.ts";
import { html } from "../../ui/html.ts";
import { actorOf, membershipOf, pathTo } from "../access.ts";
import { addForm } from "../forms.ts";
import { respondToChange, sendJson, showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { toHealthView, WEBHOOK, WEBHOOKS, webhookIdOf, webhookPath } from "./context.ts";
import { addFormRoutes } from "./form.ts";
import { webhooksPage } from "./list-page.ts";
import { addSecretRoutes, type SecretView } from "./secrets.ts";

const INTRO = "Send events to your own endpoints. Requests are signed following Standard Webhooks.";

export const webhooks: RouteModule = (router, options) => {
  const { webhooks } = options.services;
  const managers = options.allow(...MANAGERS);
  const secretView: SecretView = options.oneTimeView();

  router.get(WEBHOOKS, managers, readQuery(pageQuery), async (ctx) => {
    if (!prefersHtml(ctx)) {
      const { webhooks: page, nextCursor } = await webhooks.list(actorOf(ctx), ctx.state.query);
      const health = await webhooks.health(actorOf(ctx));
      const data = page.map((webhook) => toHealthView(ctx, webhook, health));
      return sendJson(ctx, { data, next_cursor: nextCursor });
    }
    const { webhooks: all } = await webhooks.list(actorOf(ctx), { limit: 100 });
    const content = webhooksPage({
      path: pathTo(ctx, "webhooks"),
      planPath: pathTo(ctx, "plan"),
      webhooks: all,
      health: await webhooks.health(actorOf(ctx)),
      deliveriesToday: await webhooks.countDeliveriesToday(actorOf(ctx)),
      plan: membershipOf(ctx).plan,
    });
    showPage(ctx, { title: "Webhooks", intro: INTRO, section: "webhooks", ...content });
  });

  addFormRoutes(router, options, secretView);
  addSecretRoutes(router, options, secretView);

  addForm(router, {
    path: `${WEBHOOK}/delete`,
    program: ["delete", WEBHOOK],
    access: [managers],
    section: "webhooks",
    async render(ctx) {
      const { url } = await webhooks.get(actorOf(ctx), webhookIdOf(ctx));
      const path = webhookPath(ctx);
      const body = html`<div class="panel danger">
<p>No more events will be sent to <strong>${url}</strong>, including pending retries. Its secret and delivery log will be deleted.</p>
<div class="actions">${formButton({ action: `${path}/delete`, text: "Delete webhook", look: "danger" })}${linkButton(path, "Cancel", "quiet")}</div>
</div>`;
      return { title: "Delete webhook?", body };
    },
    async change(ctx) {
      await webhooks.remove(actorOf(ctx), webhookIdOf(ctx));
      respondToChange(ctx, { to: pathTo(ctx, "webhooks"), done: "webhook-deleted" });
    },
  });
};
