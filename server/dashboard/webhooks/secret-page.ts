import { breakable, copyable, formButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";

/** A signing secret, and why it is shown. */
export type ShownSecret = { secret: string; reason: "created" | "rotated" | "viewed" };

/** The title of the page that shows a signing secret. */
export const SECRET_TITLES: Record<ShownSecret["reason"], string> = {
  created: "Webhook created",
  rotated: "New signing secret",
  viewed: "Signing secret",
};

type SecretPage = ShownSecret & { path: string; url: string };

/** Renders a signing secret and how to use it. */
export function webhookSecretPage({ path, url, secret, reason }: SecretPage): Html {
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
export function rotationForm(path: string, csrf: string | undefined): Html {
  return html`<div class="panel">
<p>For 24 hours, requests are signed with both the new and the current secret. Older secrets stop working immediately.</p>
<div class="actions">${formButton({ action: `${path}/rotate-secret`, csrf, text: "Rotate secret", look: "primary" })}${linkButton(path, "Cancel", "quiet")}</div>
</div>`;
}
