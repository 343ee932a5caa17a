import type { KeyView } from "../../../adapters/oauth/client-keys.ts";
import type { ClientView } from "../../../adapters/oauth/clients.ts";
import { csrfField, linkButton, textArea } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";

/**
 * Renders the form that adds a public key. A rejected key is not shown again, because it may be private.
 * @param error why the key was rejected
 */
export function keyForm(organizationId: string, csrf: string | undefined, error: string | undefined): Html {
  const path = sectionPath(organizationId, "client");
  return html`<form method="post" action="${path}/keys" class="panel stack">${csrfField(csrf)}
${textArea({
  name: "key",
  label: "Public key",
  hint: "A JWK, or PEM that starts with -----BEGIN PUBLIC KEY-----: RSA with at least 2048 bits, EC on P-256 or P-384, or Ed25519. Keep the private key to yourself.",
  error,
  attributes: html`rows="10" required`,
})}
<div class="actions"><button type="submit">Add key</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

/** Renders the form that asks why a key is removed. */
export function keyRemovalForm(
  organizationId: string,
  { id, thumbprint }: KeyView,
  csrf: string | undefined,
): Html {
  const path = sectionPath(organizationId, "client");
  return html`<form method="post" action="${path}/keys/${id}/delete" class="panel stack">${csrfField(csrf)}
<p>Key <code class="long">${thumbprint}</code></p>
<fieldset><legend>Reason</legend>
<label class="option"><input type="radio" name="kind" value="planned" checked> No longer used: tokens that were issued with it stay valid until they expire</label>
<label class="option"><input type="radio" name="kind" value="compromised"> Compromised private key: also revoke all tokens and app authorizations of this client now</label>
</fieldset>
<div class="actions"><button type="submit" class="danger">Remove key</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

/** Renders the confirmation that the client will have no secret. */
export function secretsRemovalForm(
  organizationId: string,
  { keys }: Pick<ClientView, "keys">,
  csrf: string | undefined,
): Html {
  const path = sectionPath(organizationId, "client");
  const warning =
    keys.length === 0
      ? html`<p class="alert">This client has no public key. Without secrets, it can get tokens only through trust rules for workloads.</p>`
      : html``;
  return html`<form method="post" action="${path}/secrets/delete" class="panel stack">${csrfField(csrf)}
${warning}
<p>All secrets stop working now, including those that are still in their overlap. Tokens stay valid until they expire. You can create a new secret at any time.</p>
<div class="actions"><button type="submit" class="danger">Remove all secrets</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}
