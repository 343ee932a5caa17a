import { field, linkButton } from "../../../ui/controls.ts";
import { type Html, html } from "../../../ui/html.ts";
import { passkeyForm, passkeyScript } from "../../../ui/passkeys.ts";

/** Renders the page that adds a passkey. */
export function newPasskeyPage(action: string, options: string, csrf: string | undefined): Html {
  const content = html`${field({
    name: "name",
    label: "Name",
    hint: "Helps you recognize the device or password manager, such as “Work laptop”.",
    attributes: html`required maxlength="50" autocomplete="off"`,
  })}
<div class="actions"><button type="submit">Add passkey</button>${linkButton("/dashboard/account", "Cancel", "quiet")}</div>`;
  return html`<section class="panel">
<p>With a passkey, you sign in with your device’s screen lock or a security key instead of a password. It also serves as your second factor.</p>
${passkeyForm("create", { action, options, fields: { csrf: csrf ?? "" } }, content, "stack")}
<noscript><p class="alert">Adding a passkey needs JavaScript.</p></noscript>
<p class="alert" data-passkey-missing hidden>This browser doesn’t support passkeys.</p>
${passkeyScript()}
</section>`;
}
