import { credentials, type External, externalButton, hidden } from "./fields.ts";
import { type Html, html } from "./html.ts";
import { alert, page } from "./page.ts";

type Form = {
  username?: string;
  error?: string;
  /** The other way to sign in, if there is one. */
  external?: External | undefined;
};

/** The sign-in step of an authorization. */
export type AuthorizationSignIn = Form & {
  /** Where the form is sent. */
  action: string;
  csrf: string;
  /** The organization of the app that sent the person here. */
  app: string;
};

/** Shows it. */
export function signInPage({ action, csrf, app, ...form }: AuthorizationSignIn): string {
  return page(
    "Sign in",
    html`<h1>Sign in</h1>
<p>An app of <strong>${app}</strong> would like to act for you. Sign in to decide.</p>
${signInForm(action, hidden("csrf", csrf), form)}`,
  );
}

/** The way into the dashboard. */
export type DashboardSignIn = Form & {
  returnTo: string;
  /** The person is signed in, but too long ago for what comes next. */
  again: boolean;
  mayRegister: boolean;
};

/** Shows it. */
export function dashboardSignInPage({ returnTo, again, mayRegister, ...form }: DashboardSignIn): string {
  const fields = html`${hidden("return_to", returnTo)}${again ? hidden("again", "1") : html``}`;
  const register = html`<p class="hint">New here? <a href="/auth/register?${new URLSearchParams({ return_to: returnTo })}">Create an account</a>.</p>`;
  return page(
    "Sign in",
    html`<h1>${again ? "Sign in again" : "Sign in"}</h1>
${again ? html`<p>What comes next needs a sign-in from the last ten minutes.</p>` : html``}
${signInForm("/auth/login", fields, form)}
${mayRegister && !again ? register : html``}
<p class="hint">Forgot the password? An owner of your organization can make a link that sets a new one.</p>`,
  );
}

function signInForm(action: string, fields: Html, { username = "", error, external }: Form): Html {
  return html`${alert(error, "error")}
<form method="post" action="${action}">
${fields}
${credentials({ username, error })}
<button type="submit">Sign in</button>
</form>
${externalButton(external)}`;
}
