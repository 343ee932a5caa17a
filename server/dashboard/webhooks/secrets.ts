import type { Context } from "koa";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import type { WebhookWithSecret } from "../../../resources/webhooks/types.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { breakable, copyable, linkButton, panelForm } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { actorOf, pathTo } from "../access.ts";
import { addForm } from "../forms.ts";
import type { OneTimeView } from "../one-time-view.ts";
import { sendJson } from "../responses.ts";
import type { RouteModule } from "../route.ts";
import { findWebhook, requirePlan, toDashboardView, WEBHOOK, webhookIdOf, webhookPath } from "./context.ts";

type ShownSecret = { secret: string; reason: keyof typeof TITLES };
export type SecretView = OneTimeView<ShownSecret>;

const TITLES = { created: "Webhook created", rotated: "New signing secret", viewed: "Signing secret" };

/** Returns a secret to a script; redirects a browser to the page that shows it once. */
export function respondWithSecret(
  ctx: Context,
  view: SecretView,
  { webhook, secret }: WebhookWithSecret,
  reason: ShownSecret["reason"],
): void {
  const path = `${pathTo(ctx, "webhooks")}/${webhook.id}/secret`;
  if (prefersHtml(ctx)) view.redirect(ctx, path, { secret, reason });
  else sendJson(ctx, { ...toDashboardView(ctx, webhook), secret }, reason === "created" ? 201 : 200);
}

/** Adds the pages that rotate a signing secret, and that show one. */
export const webhookSecrets: RouteModule = (router, { services, allow, oneTimeView }) => {
  const { webhooks } = services;
  const managers = allow(...MANAGERS);
  const secretView: SecretView = oneTimeView();

  // As for a view: a session that someone else got hold of must not lead to a secret that the endpoint trusts.
  addForm(router, {
    path: `${WEBHOOK}/rotate-secret`,
    access: [managers, requirePlan],
    section: "webhooks",
    needsRecentSignIn: true,
    summary: "Rotate the signing secret",
    async render(ctx) {
      const { url } = await findWebhook(ctx, services);
      return { title: "Rotate signing secret", intro: url, body: rotationForm(webhookPath(ctx)) };
    },
    async change(ctx) {
      const rotated = await webhooks.rotateSecret(actorOf(ctx), webhookIdOf(ctx));
      respondWithSecret(ctx, secretView, rotated, "rotated");
    },
  });

  // A POST: every view is recorded, and none is repeated by going back or by prefetching a link.
  router.post(`${WEBHOOK}/secret`, managers, async (ctx) => {
    ctx.state.summary = "View the signing secret";
    requireRecentSignIn(ctx, webhookPath(ctx));
    respondWithSecret(ctx, secretView, await webhooks.viewSecret(actorOf(ctx), webhookIdOf(ctx)), "viewed");
  });

  router.get(`${WEBHOOK}/secret/:view`, managers, async (ctx) => {
    const { url } = await findWebhook(ctx, services);
    const path = webhookPath(ctx);
    secretView.show(ctx, {
      section: "webhooks",
      page: (shown) => ({ title: TITLES[shown.reason], body: secretPage(path, url, shown) }),
      kind: "secret",
      explanation: "You can view the secret again on the webhook’s page.",
      back: { href: path, text: "Back to the webhook" },
    });
  });
};

function secretPage(path: string, url: string, { secret, reason }: ShownSecret): Html {
  return html`<div class="panel" data-once>
<p class="alert">Copy the signing secret and store it safely. Owners and admins can show it again on the webhook’s page, and the audit log records every view.</p>
<dl class="facts">
<dt>Endpoint URL</dt><dd>${breakable(url)}</dd>
<dt>Signing secret</dt><dd>${copyable(secret, "the signing secret")}</dd>
</dl>
${reason === "created" && html`<p>Your endpoint gets a test event first, and other events once it has responded with 2xx. When it is ready, send another test event from the webhook’s page.</p>`}
${reason === "rotated" && html`<p>Requests are signed with both the new and the previous secret for 24 hours, so you have time to update your endpoint.</p>`}
<p>Verify the signature of every request so you know it came from linkgate. The <a href="https://www.standardwebhooks.com/">Standard Webhooks</a> libraries do this for you, for example <code>standardwebhooks</code> for TypeScript and Python.</p>
<div class="actions">${linkButton(path, "Done")}</div>
</div>`;
}

function rotationForm(path: string): Html {
  return panelForm(
    { action: `${path}/rotate-secret`, submit: "Rotate secret", cancel: path },
    html`<p>For 24 hours, requests are signed with both the new and the current secret. Older secrets stop working immediately.</p>`,
  );
}
