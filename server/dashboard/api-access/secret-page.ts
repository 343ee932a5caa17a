import type { NewClient } from "../../../adapters/oauth/clients.ts";
import { copyable, linkButton, time } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";

/** What became of older secrets: when the previous one expires, or that all were revoked, or that there were none. */
type Previous = { expiresAt: number } | "revoked" | "none";

/** A client secret that was just created; without `previous` if the client was, too. */
export type NewSecret = NewClient & { previous?: Previous };

/** Returns the path below which a new client secret is shown. */
export function newSecretPath(organizationId: string): string {
  return `${sectionPath(organizationId, "client")}/new-secret`;
}

/** Renders the page that shows a new client secret once. */
export function newSecretPage(organizationId: string, { clientId, clientSecret, previous }: NewSecret): Html {
  const path = sectionPath(organizationId, "client");
  return html`<div class="panel" data-once>
<p class="alert">Copy the secret now and store it safely. You won’t be able to see it again.</p>
<dl class="facts">
<dt>Client ID</dt><dd>${copyable(clientId, "client ID")}</dd>
<dt>Client secret</dt><dd>${copyable(clientSecret, "client secret")}</dd>
</dl>
${previousSecret(previous)}
<div class="actions">${linkButton(path, "Done")}${linkButton(`${path}/quick-start`, "Open quick start", "quiet")}</div>
</div>`;
}

function previousSecret(previous: Previous | undefined): Html {
  if (previous === undefined || previous === "none") return html``;
  if (previous === "revoked")
    return html`<p>All older secrets and all tokens of this client have been revoked.</p>`;
  return html`<p>The previous secret stays valid until ${time(previous.expiresAt)}.</p>`;
}
