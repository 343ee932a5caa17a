import type { NewClient } from "../../../adapters/clients.ts";
import { type Html, html } from "../html.ts";
import { copyable, linkButton } from "./controls.ts";
import { sectionPath } from "./layout.ts";

/** A new secret: the one time that it is shown. */
export function newSecretPage(
  organizationId: string,
  { clientId, clientSecret }: NewClient,
  note: Html = html``,
): Html {
  const path = sectionPath(organizationId, "client");
  return html`<div class="panel">
<p class="alert">Copy the secret now and keep it where you keep passwords. It is not stored, and never shown again.</p>
<dl class="facts">
<dt>Client id</dt><dd>${copyable(clientId, "the client id")}</dd>
<dt>Client secret</dt><dd>${copyable(clientSecret, "the client secret")}</dd>
</dl>
${note}
<div class="actions">${linkButton(`${path}/quick-start`, "Open the quick start")}${linkButton(path, "I have copied it", "quiet")}</div>
</div>`;
}
