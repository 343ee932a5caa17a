import { type Html, html } from "../../ui/html.ts";
import { alert, describedBy, page } from "../../ui/page.ts";
import { type PasskeyOption, passkeyButton } from "../../ui/passkeys.ts";

type SecondFactorPage = {
  action: string;
  passkey: PasskeyOption | undefined;
  hasTotp: boolean;
  /** Whether to ask for a recovery code. */
  isRecovery: boolean;
  error: string | undefined;
};

/** Renders the page that asks for the second factor after the password. */
export function secondFactorPage({ action, passkey, hasTotp, isRecovery, error }: SecondFactorPage): string {
  const other = isRecovery
    ? html`<a href="${action}">Use another method</a>`
    : html`<a href="${action}?method=recovery_code">Use a recovery code</a>`;
  return page(
    "Confirm it’s you",
    html`<h1>Confirm it’s you</h1>
${alert(error, "error")}
${isRecovery ? recoveryForm(action, error) : html`${hasTotp ? totpForm(action, error) : html``}${passkeyPart(passkey, hasTotp)}`}
<p class="hint">${other}</p>
<p class="hint">No access to any of these? Ask your administrator to reset your second factors.</p>`,
  );
}

function totpForm(action: string, error: string | undefined): Html {
  return html`<form method="post" action="${action}">
<label for="totp">Code from your authenticator app</label>
<input id="totp" name="totp" inputmode="numeric" autocomplete="one-time-code" maxlength="7" required autofocus${describedBy(error)}>
<button type="submit">Continue</button>
</form>`;
}

function passkeyPart(passkey: PasskeyOption | undefined, hasTotp: boolean): Html {
  if (!passkey) return html``;
  return html`${hasTotp ? html`` : html`<p>Use your passkey to finish signing in.</p>`}
${passkeyButton(passkey, "Use a passkey")}
<noscript><p class="hint">Passkeys need JavaScript.</p></noscript>`;
}

function recoveryForm(action: string, error: string | undefined): Html {
  return html`<form method="post" action="${action}">
<label for="recovery_code">Recovery code</label>
<input id="recovery_code" name="recovery_code" autocomplete="off" autocapitalize="none" spellcheck="false" required autofocus${describedBy(error, "recovery-hint")}>
<p class="hint" id="recovery-hint">One of the codes that you saved when you set up your second factor. Each code works once.</p>
<button type="submit">Continue</button>
</form>`;
}
