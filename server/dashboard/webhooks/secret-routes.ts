import type { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import type { WebhookService, WebhookWithSecret } from "../../../resources/webhooks/service.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { actorOf, signedInUserOf } from "../access.ts";
import { type CreateOneTimeView, type OneTimeView, showAlreadyShown } from "../one-time-view.ts";
import { showPage } from "../responses.ts";
import { requirePlan, toDashboardView, WEBHOOK, webhookIdOf, webhookPath, webhooksPath } from "./context.ts";
import { rotationForm, SECRET_TITLES, type ShownSecret, webhookSecretPage } from "./secret-page.ts";

/** Shows a signing secret once. */
export type SecretView = Pick<OneTimeView<ShownSecret>, "open"> & {
  /** Returns the secret to a script; redirects a browser to the page that shows it once. */
  respond(ctx: Context, found: WebhookWithSecret, reason: ShownSecret["reason"]): void;
};

type SecretRouteOptions = { webhooks: WebhookService; managers: Middleware; secretView: SecretView };

/** Creates the view of signing secrets. */
export function createSecretView(oneTimeView: CreateOneTimeView): SecretView {
  const view = oneTimeView<ShownSecret>();
  return {
    open: view.open,

    respond(ctx, { webhook, secret }, reason) {
      if (prefersHtml(ctx)) {
        return view.redirect(ctx, `${webhooksPath(ctx)}/${webhook.id}/secret`, { secret, reason });
      }
      ctx.status = reason === "created" ? 201 : 200;
      ctx.body = { ...toDashboardView(ctx, webhook), secret };
    },
  };
}

/** Adds the routes that rotate a signing secret and show the current one. */
export function addSecretRoutes(
  router: Router,
  { webhooks, managers, secretView }: SecretRouteOptions,
): void {
  router.get(`${WEBHOOK}/rotate-secret`, managers, requirePlan, async (ctx) => {
    requireRecentSignIn(ctx);
    const { url } = await webhooks.get(actorOf(ctx), webhookIdOf(ctx));
    const body = rotationForm(webhookPath(ctx), signedInUserOf(ctx).csrf);
    showPage(ctx, { title: "Rotate signing secret", intro: url, section: "webhooks" }, body);
  });

  // As for a view: a session that someone else got hold of must not lead to a secret that the endpoint trusts.
  router.post(`${WEBHOOK}/rotate-secret`, managers, requirePlan, async (ctx) => {
    requireRecentSignIn(ctx, `${webhookPath(ctx)}/rotate-secret`);
    secretView.respond(ctx, await webhooks.rotateSecret(actorOf(ctx), webhookIdOf(ctx)), "rotated");
  });

  // A POST: every view is recorded, and none is repeated by going back or by prefetching a link.
  router.post(`${WEBHOOK}/secret`, managers, async (ctx) => {
    requireRecentSignIn(ctx, webhookPath(ctx));
    secretView.respond(ctx, await webhooks.viewSecret(actorOf(ctx), webhookIdOf(ctx)), "viewed");
  });

  router.get(`${WEBHOOK}/secret/:view`, managers, async (ctx) => {
    const { url } = await webhooks.get(actorOf(ctx), webhookIdOf(ctx));
    const path = webhookPath(ctx);
    const shown = secretView.open(ctx);
    if (!shown) return showAlreadyShownSecret(ctx, path);
    const title = SECRET_TITLES[shown.reason];
    showPage(ctx, { title, section: "webhooks" }, webhookSecretPage({ path, url, ...shown }));
  });
}

/** Explains that this page showed the secret before, and where it can be shown again. */
function showAlreadyShownSecret(ctx: Context, path: string): void {
  showAlreadyShown(ctx, "webhooks", {
    kind: "secret",
    explanation:
      "This page shows the signing secret only once. You can show it again from the webhook’s page.",
    back: { href: path, text: "Back to the webhook" },
  });
}
