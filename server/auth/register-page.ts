import { type External, externalButton, hidden } from "./fields.ts";
import { html } from "./html.ts";
import { alert, describedBy, page } from "./page.ts";

/** Makes an account and its organization. */
export type Registration = {
  username?: string;
  organizationName?: string;
  /** Where to go afterwards. */
  returnTo: string;
  /** The secret of an invitation, which leads to an organization that is there. */
  invitation?: string | undefined;
  error?: string;
  external?: External | undefined;
};

/** Shows the form for it. */
export function registerPage(registration: Registration): string {
  const { username = "", organizationName = "", returnTo, invitation, error, external } = registration;
  return page(
    "Create an account",
    html`<h1>Create an account</h1>
${alert(error, "error")}
<form method="post" action="/auth/register">
${hidden("return_to", returnTo)}${invitation ? hidden("invitation", invitation) : html``}
<label for="username">Username</label>
<input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus${describedBy(error, "username-hint")}>
<p class="hint" id="username-hint">3 to 64 letters, digits and . _ @ + -</p>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="new-password" required${describedBy(undefined, "password-hint")}>
<p class="hint" id="password-hint">8 to 128 characters; a few words you can remember are best.</p>
${
  invitation
    ? html``
    : html`<label for="organization_name">Name of your organization (optional)</label>
<input id="organization_name" name="organization_name" value="${organizationName}" autocomplete="organization" maxlength="100">`
}
<button type="submit">Create the account</button>
</form>
${externalButton(external)}
<p class="hint">You have an account? <a href="/auth/login?${new URLSearchParams({ return_to: returnTo })}">Sign in</a>.</p>`,
  );
}
