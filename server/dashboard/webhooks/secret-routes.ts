import type { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import type { WebhookService, WebhookWithSecret } from "../../../resources/webhooks/service.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { actorOf, signedInUserOf } from "../access.ts";
import { type CreateOneTimeView, type OneTimeView, showAlreadyShown } from "../one-time-view.ts";
import { showPage } from "../responses.ts";
import { requirePlan, toDashboardView, WEBHOOK, webhookIdOf, webhookPath, webhooksPath } from "./context.ts";
import { rotationForm, webhookSecretPage } from "./secret-page.ts";

type NewSecret = { secret: string; isNew: boolean };

/** Shows a new signing secret once. */
export type SecretView = Pick<OneTimeView<NewSecret>, "open"> & {
  /** Returns the secret to a script; redirects a browser to the page that shows it once. */
  respond(ctx: Context, created: WebhookWithSecret, status?: number): void;
};

type SecretRouteOptions = { webhooks: WebhookService; managers: Middleware; secretView: SecretView };

/** Creates the view of new signing secrets. */
export function createSecretView(oneTimeView: CreateOneTimeView): SecretView {
  const view = oneTimeView<NewSecret>();
  return {
    open: view.open,

    respond(ctx, { webhook, secret }, status = 200) {
      if (prefersHtml(ctx)) {
        const path = `${webhooksPath(ctx)}/${webhook.id}/new-secret`;
        return view.redirect(ctx, path, { secret, isNew: status === 201 });
      }
      ctx.status = status;
      ctx.body = { ...toDashboardView(ctx, webhook), secret };
    },
  };
}

/** Adds the routes that rotate a signing secret and show a new one. */
export function addSecretRoutes(
  router: Router,
  { webhooks, managers, secretView }: SecretRouteOptions,
): void {
  router.get(`${WEBHOOK}/rotate-secret`, managers, requirePlan, async (ctx) => {
    const { url } = await webhooks.get(actorOf(ctx), webhookIdOf(ctx));
    const body = rotationForm(webhookPath(ctx), signedInUserOf(ctx).csrf);
    showPage(ctx, { title: "Rotate signing secret", intro: url, section: "webhooks" }, body);
  });

  router.post(`${WEBHOOK}/rotate-secret`, managers, requirePlan, async (ctx) => {
    secretView.respond(ctx, await webhooks.rotateSecret(actorOf(ctx), webhookIdOf(ctx)));
  });

  router.get(`${WEBHOOK}/new-secret/:view`, managers, async (ctx) => {
    const { url } = await webhooks.get(actorOf(ctx), webhookIdOf(ctx));
    const path = webhookPath(ctx);
    const secret = secretView.open(ctx);
    if (!secret) return showAlreadyShownSecret(ctx, path);
    const title = secret.isNew ? "Webhook created" : "New signing secret";
    showPage(ctx, { title, section: "webhooks" }, webhookSecretPage({ path, url, ...secret }));
  });
}

/** Explains that the secret was already shown and how to get a new one. */
function showAlreadyShownSecret(ctx: Context, path: string): void {
  showAlreadyShown(ctx, "webhooks", {
    kind: "secret",
    name: "A signing secret",
    advice: "If you didn’t save it, rotate the secret to get a new one.",
    back: { href: path, text: "Back to the webhook" },
    renew: { href: `${path}/rotate-secret`, text: "Rotate secret" },
  });
}
