import { html } from "../ui/html.ts";
import { alert, describedBy, page } from "../ui/page.ts";

/** Renders the form that a password reset link opens. */
export function resetPage({
  action,
  username,
  error,
}: {
  action: string;
  username: string;
  error?: string;
}): string {
  return page(
    "New password",
    html`<h1>Choose a new password</h1>
<p>For <strong>${username}</strong>. You will be signed out everywhere, and apps you authorized lose access.</p>
${alert(error, "error")}
<form method="post" action="${action}">
<input type="hidden" name="username" value="${username}" autocomplete="username">
<label for="password">New password</label>
<input id="password" name="password" type="password" autocomplete="new-password" required autofocus${describedBy(error, "hint")}>
<p class="hint" id="hint">At least 8 characters. A few random words work well.</p>
<button type="submit">Save password</button>
</form>`,
  );
}
