import type { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import type { WebhookService } from "../../../resources/webhooks/service.ts";
import type { WebhookWithSecret } from "../../../resources/webhooks/types.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { breakable, copyable, formButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { actorOf, signedInUserOf } from "../access.ts";
import { type CreateOneTimeView, type OneTimeView, showAlreadyShown } from "../one-time-view.ts";
import { showPage } from "../responses.ts";
import { requirePlan, toDashboardView, WEBHOOK, webhookIdOf, webhookPath, webhooksPath } from "./context.ts";

/** A signing secret, and why it is shown. */
type ShownSecret = { secret: string; reason: "created" | "rotated" | "viewed" };

/** The title of the page that shows a signing secret. */
const SECRET_TITLES: Record<ShownSecret["reason"], string> = {
  created: "Webhook created",
  rotated: "New signing secret",
  viewed: "Signing secret",
};

type SecretPage = ShownSecret & { path: string; url: string };

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

/** Renders a signing secret and how to use it. */
function webhookSecretPage({ path, url, secret, reason }: SecretPage): Html {
  return html`<div class="panel" data-once>
<p class="alert">Copy the signing secret and store it safely. Owners and admins can show it again on the webhook’s page, and the audit log records every view.</p>
<dl class="facts">
<dt>Endpoint URL</dt><dd>${breakable(url)}</dd>
<dt>Signing secret</dt><dd>${copyable(secret, "the signing secret")}</dd>
</dl>
${reason === "created" ? html`<p>Your endpoint gets a test event first, and other events once it has responded with 2xx. When it is ready, send another test event from the webhook’s page.</p>` : html``}
${reason === "rotated" ? html`<p>Requests are signed with both the new and the previous secret for 24 hours, so you have time to update your endpoint.</p>` : html``}
<p>Verify the signature of every request so you know it came from linkgate. The <a href="https://www.standardwebhooks.com/">Standard Webhooks</a> libraries do this for you, for example <code>standardwebhooks</code> for TypeScript and Python.</p>
<div class="actions">${linkButton(path, "Done")}</div>
</div>`;
}

/** Asks for confirmation before a rotation. */
function rotationForm(path: string, csrf: string | undefined): Html {
  return html`<div class="panel">
<p>For 24 hours, requests are signed with both the new and the current secret. Older secrets stop working immediately.</p>
<div class="actions">${formButton({ action: `${path}/rotate-secret`, csrf, text: "Rotate secret", look: "primary" })}${linkButton(path, "Cancel", "quiet")}</div>
</div>`;
}
