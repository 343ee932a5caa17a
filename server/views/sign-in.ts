import { html } from "./html.ts";
import { alert, describedBy, page } from "./page.ts";

export type SignIn = {
  /** Where the form is sent. */
  action: string;
  csrf: string;
  /** The organization of the app that sent the person here. */
  app: string;
  username?: string;
  error?: string;
};

/** The sign-in step of an authorization. */
export function signInPage({ action, csrf, app, username = "", error }: SignIn): string {
  // What is still to be typed has the focus.
  const focus = (isNext: boolean) => (isNext ? html` autofocus` : html``);
  return page(
    "Sign in",
    html`<h1>Sign in</h1>
<p>An app of <strong>${app}</strong> would like to act for you. Sign in to decide.</p>
${alert(error, "error")}
<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
<label for="username">Username</label>
<input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" required${focus(!username)}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${describedBy(error)}${focus(Boolean(username))}>
<button type="submit">Sign in</button>
</form>`,
  );
}
