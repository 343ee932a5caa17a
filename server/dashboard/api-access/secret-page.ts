import type { NewClient } from "../../../adapters/clients.ts";
import { type Html, html } from "../html.ts";
import { copyable, linkButton, time } from "./controls.ts";
import { sectionPath } from "./layout.ts";

/** A client secret that was just created; `previousExpiresAt` is null if all older ones were revoked. */
export type NewSecret = NewClient & { previousExpiresAt?: number | null };

/** Shows a client secret, once. */
export function newSecretPage(
  organizationId: string,
  { clientId, clientSecret, previousExpiresAt }: NewSecret,
): Html {
  const path = sectionPath(organizationId, "client");
  return html`<div class="panel" data-once>
<p class="alert">Copy the secret now and store it safely. You won’t be able to see it again.</p>
<dl class="facts">
<dt>Client id</dt><dd>${copyable(clientId, "the client id")}</dd>
<dt>Client secret</dt><dd>${copyable(clientSecret, "the client secret")}</dd>
</dl>
${previousSecret(previousExpiresAt)}
<div class="actions">${linkButton(path, "Done")}${linkButton(`${path}/quick-start`, "Open the quick start", "quiet")}</div>
</div>`;
}

function previousSecret(expiresAt: number | null | undefined): Html {
  if (expiresAt === undefined) return html``;
  if (expiresAt === null) return html`<p>All older secrets and all tokens of this client were revoked.</p>`;
  return html`<p>The previous secret stays valid until ${time(expiresAt)}.</p>`;
}
