import { csrfField, field, linkButton } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";

/** Renders the form that asks for the reason and the overlap of a rotation. */
export function rotationForm(organizationId: string, csrf: string | undefined): Html {
  const path = sectionPath(organizationId, "client");
  return html`<form method="post" action="${path}/rotate" class="panel stack">${csrfField(csrf)}
<fieldset><legend>Reason</legend>
<label class="option"><input type="radio" name="kind" value="planned" checked> Scheduled rotation: the old secret stays valid for a while</label>
<label class="option"><input type="radio" name="kind" value="compromised"> Compromised secret: revoke all older secrets, tokens and app authorizations of this client now</label>
</fieldset>
${field({
  name: "overlap_hours",
  label: "Keep the old secret valid for (hours)",
  type: "number",
  value: 24,
  hint: "0 to 168. Ignored if the secret is compromised. Only two secrets can be active: a third one revokes the oldest.",
  attributes: html`min="0" max="168" step="any"`,
})}
<div class="actions"><button type="submit">Rotate secret</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

/** Renders the form that creates a secret for a client that has none. */
export function secretCreationForm(organizationId: string, csrf: string | undefined): Html {
  const path = sectionPath(organizationId, "client");
  return html`<form method="post" action="${path}/rotate" class="panel stack">${csrfField(csrf)}
<input type="hidden" name="kind" value="planned"><input type="hidden" name="overlap_hours" value="0">
<p>The secret is shown once. Public keys stay valid.</p>
<div class="actions"><button type="submit">Create secret</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}
