import { renderSVG } from "uqr";
import { copyable, csrfField, field, linkButton } from "../../../ui/controls.ts";
import { type Html, html, trusted } from "../../../ui/html.ts";

type TotpPage = {
  action: string;
  secret: string;
  uri: string;
  csrf: string | undefined;
  error: string | undefined;
};

const GROUP = /.{4}(?!$)/g;
// ISO/IEC 18004 requires a quiet zone of four modules.
const RENDERING = { border: 4, ecc: "M" } as const;

/** Renders the page that sets up an authenticator app. */
export function totpPage({ action, secret, uri, csrf, error }: TotpPage): Html {
  return html`<section class="panel">
<ol class="steps">
<li>Scan this QR code with your authenticator app, or enter the key below.
<div class="qr" role="img" aria-label="QR code for your authenticator app">${trusted(renderSVG(uri, RENDERING))}</div>
<p>${copyable(secret.replace(GROUP, "$& "), "key")}</p></li>
<li>Enter the 6-digit code that the app shows.</li>
</ol>
<form method="post" action="${action}" class="stack">${csrfField(csrf)}
${field({
  name: "code",
  label: "Code",
  error,
  attributes: html`inputmode="numeric" autocomplete="one-time-code" maxlength="7" required autofocus`,
})}
<div class="actions"><button type="submit">Confirm code</button>${linkButton("/dashboard/account", "Cancel", "quiet")}</div>
</form></section>`;
}
