import { type Html, html } from "../html.ts";
import { copyable, formButton, linkButton } from "./controls.ts";

type SecretPage = { path: string; url: string; secret: string; isNew: boolean };

/** A secret: the one time that it is shown, and what it is good for. */
export function webhookSecretPage({ path, url, secret, isNew }: SecretPage): Html {
  return html`<div class="panel">
<p class="alert">Copy the secret now and keep it where your receiver finds it. It is never shown again.</p>
<dl class="facts">
<dt>Receiver</dt><dd>${url}</dd>
<dt>Secret</dt><dd>${copyable(secret, "the webhook secret")}</dd>
</dl>
${isNew ? html`` : html`<p>For 24 hours every delivery is signed with the old secret as well: time to change it at the receiver.</p>`}
<p>Let your receiver check the signature of every delivery: it tells that it comes from here. Libraries of <a href="https://www.standardwebhooks.com/">Standard Webhooks</a> do it, such as <code>standardwebhooks</code> for TypeScript and Python.</p>
<div class="actions">${linkButton(path, "I have copied it")}</div>
</div>`;
}

/** Asks before a secret is replaced. */
export function rotationForm(path: string, csrf: string | undefined): Html {
  return html`<div class="panel">
<p>You get a new secret, which is shown once. For 24 hours every delivery is signed with the old one as well; one that is older still ends at once.</p>
<div class="actions">${formButton({ action: `${path}/rotate-secret`, csrf, text: "Make a new secret", look: "primary" })}${linkButton(path, "Cancel", "quiet")}</div>
</div>`;
}
