import { html } from "./html.ts";
import { alert, describedBy, page } from "./page.ts";

/** Sets a new password, reached by a link that is good once. */
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
<p>For <strong>${username}</strong>. You will be signed out everywhere, and apps that act for you lose their access.</p>
${alert(error, "error")}
<form method="post" action="${action}">
<input type="hidden" name="username" value="${username}" autocomplete="username">
<label for="password">New password</label>
<input id="password" name="password" type="password" autocomplete="new-password" required autofocus${describedBy(error, "hint")}>
<p class="hint" id="hint">8 to 128 characters; a few words you can remember are best.</p>
<button type="submit">Save the password</button>
</form>`,
  );
}
