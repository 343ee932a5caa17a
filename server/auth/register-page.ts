import { hidden, type SsoOption, ssoButton } from "../ui/fields.ts";
import { html } from "../ui/html.ts";
import { invitationSentence, type ShownInvitation } from "../ui/invitation.ts";
import { alert, describedBy, page } from "../ui/page.ts";

export type Registration = {
  username?: string;
  organizationName?: string;
  /** The path to redirect to afterward. */
  returnTo: string;
  /** The secret of an invitation to an existing organization; without it, the user gets a new one. */
  invitation?: string | undefined;
  /** What that invitation says; undefined if it is not valid. */
  invited?: ShownInvitation | undefined;
  error?: string;
  external?: SsoOption | undefined;
};

/** Renders the registration form. */
export function registerPage(registration: Registration): string {
  const {
    username = "",
    organizationName = "",
    returnTo,
    invitation,
    invited,
    error,
    external,
  } = registration;
  return page(
    "Create an account",
    html`<h1>Create an account</h1>
${invited ? html`<p>${invitationSentence(invited)}</p>` : html``}
${alert(error, "error")}
<form method="post" action="/auth/register">
${hidden("return_to", returnTo)}${invitation ? hidden("invitation", invitation) : html``}
<label for="username">Username</label>
<input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus${describedBy(error, "username-hint")}>
<p class="hint" id="username-hint">3 to 64 letters, digits and . _ @ + -</p>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="new-password" required${describedBy(undefined, "password-hint")}>
<p class="hint" id="password-hint">At least 8 characters. A few random words work well.</p>
${
  invitation
    ? html``
    : html`<label for="organization_name">Organization name (optional)</label>
<input id="organization_name" name="organization_name" value="${organizationName}" autocomplete="organization" maxlength="100">`
}
<button type="submit">Create account</button>
</form>
${ssoButton(external)}
<p class="hint">Already have an account? <a href="/auth/login?${new URLSearchParams({ return_to: returnTo })}">Sign in</a></p>`,
  );
}
