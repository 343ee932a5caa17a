import { html } from "../ui/html.ts";
import { page } from "../ui/page.ts";

/** Renders the form that requests a password reset by email. */
export function forgotPasswordPage(): string {
  return page(
    "Reset your password",
    html`<h1>Reset your password</h1>
<p>Enter your username to get a reset link by email. This works if you confirmed an email address on your account page.</p>
<form method="post" action="/auth/forgot-password">
<label for="username">Username</label>
<input id="username" name="username" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus>
<button type="submit">Send reset link</button>
</form>
<p class="hint">No email address? Ask an organization owner or your administrator for a reset link.</p>
<p class="hint"><a href="/auth/login">Back to sign-in</a></p>`,
  );
}
