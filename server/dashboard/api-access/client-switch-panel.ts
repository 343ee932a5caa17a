import type { Disabled } from "../../../adapters/oauth/client-switch.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { csrfField, field, formButton, linkButton, time } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";

type Panel = { membership: Membership; disabled: Disabled | null; csrf: string | undefined };

/** Says at the top of the page that the client is disabled. */
export function disabledAlert(disabled: Disabled | null): Html {
  if (!disabled) return html``;
  const { at, by, reason } = disabled;
  const who = by === OPERATOR.id ? "The operator of this service" : "An owner";
  return html`<p class="alert bad">${who} disabled this client on ${time(at)}. Its requests and tokens are rejected.${reason ? html` Reason: ${reason}` : html``}</p>`;
}

/** Renders the control that disables or enables the client, for owners. */
export function switchPanel({ membership, disabled, csrf }: Panel): Html {
  const path = sectionPath(membership.id, "client");
  if (membership.role !== "owner") return html``;
  if (!disabled) {
    return html`<section class="panel danger"><h2>Disable client</h2>
<p class="soft">Stops the client and all apps that use it, until you enable it again.</p>
${linkButton(`${path}/disable`, "Disable client", "danger")}</section>`;
  }
  return html`<section class="panel"><h2>Enable client</h2>
${
  disabled.by === OPERATOR.id
    ? html`<p class="soft">Only the operator of this service can enable this client.</p>`
    : html`<p class="soft">The client and its unexpired tokens work again. If a secret leaked, rotate it first.</p>
${formButton({ action: `${path}/enable`, csrf, text: "Enable client" })}`
}</section>`;
}

/** Renders the form that disables the client. */
export function disableForm(
  organizationId: string,
  { csrf, error }: { csrf: string | undefined; error: string | undefined },
): Html {
  const path = sectionPath(organizationId, "client");
  return html`<form method="post" action="${path}/disable" class="panel danger stack">${csrfField(csrf)}
<p>While the client is disabled:</p>
<ul>
<li>it gets no tokens, and its tokens are rejected by the API and MCP</li>
<li>apps that use it lose access, for members of any organization</li>
</ul>
<p>Nothing is revoked: the tokens work again if you enable the client before they expire. To revoke them, rotate the secret as compromised.</p>
${field({ name: "reason", label: "Reason (optional)", hint: "For the audit log.", error, attributes: html`maxlength="255" autocomplete="off"` })}
<div class="actions"><button type="submit" class="danger">Disable client</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}
