import type { ClientIdentity } from "../clients/app-identity.ts";
import { hidden } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { alert, page } from "../ui/page.ts";
import {
  credentials,
  invitationSentence,
  type PasskeyOption,
  passkeyButton,
  type ShownInvitation,
  type SsoOption,
  ssoButton,
} from "../ui/sign-in.ts";

type Form = {
  username?: string;
  error?: string;
  external?: SsoOption | undefined;
  passkey?: PasskeyOption | undefined;
};

export type AuthorizationSignIn = Form & {
  action: string;
  /** The hidden fields. */
  fields: Html;
  app: {
    name: string;
    /** The organization whose client it is. */
    organization?: { name: string };
    /** Who vouches for the name of any other app. */
    identity?: ClientIdentity | undefined;
  };
};

export function signInPage({ action, fields, app, ...form }: AuthorizationSignIn): string {
  return page(
    "Sign in",
    html`<h1>Sign in</h1>
<p>${describeApp(app)} wants to access your account. Sign in to continue.</p>
${signInForm(action, fields, form)}`,
  );
}

/** Names the app. A registered client may have taken the name of any company, so the app isn't one "by" it. */
function describeApp({ name, organization, identity }: AuthorizationSignIn["app"]): Html {
  const app = html`<strong><bdi>${name}</bdi></strong>`;
  if (!organization) return html`${app}${!identity?.isKnown && ", an app that isn’t verified,"}`;
  if (name === organization.name) return html`An app by ${app}`;
  return html`${app}, an app by <strong><bdi>${organization.name}</bdi></strong>,`;
}

export type DashboardSignIn = Form & {
  returnTo: string;
  again: boolean;
  isDeleted: boolean;
  mayRegister: boolean;
  hasMail: boolean;
  invited?: ShownInvitation | undefined;
};

export function dashboardSignInPage({
  returnTo,
  again,
  isDeleted,
  mayRegister,
  hasMail,
  invited,
  ...form
}: DashboardSignIn): string {
  const fields = html`${hidden("return_to", returnTo)}${again && hidden("again", "1")}`;
  const register = html`<p class="hint">New here? <a href="/auth/register?${new URLSearchParams({ return_to: returnTo })}">Create an account</a></p>`;
  return page(
    "Sign in",
    html`<h1>${again ? "Sign in again" : "Sign in"}</h1>
${isDeleted && html`<p class="notice" role="status">Your account was deleted.</p>`}
${again && html`<p>For your security, please sign in again.</p>`}
${invited && html`<p>${invitationSentence(invited)} Sign in to accept.</p>`}
${signInForm("/auth/login", fields, form)}
${mayRegister && !again && register}
${hasMail ? html`<p class="hint">Forgot your password? <a href="/auth/forgot-password">Reset it by email</a></p>` : html`<p class="hint">Forgot your password? Ask an organization owner or your administrator for a reset link.</p>`}`,
  );
}

function signInForm(action: string, fields: Html, { username = "", error, external, passkey }: Form): Html {
  return html`${alert(error, "error")}
<form method="post" action="${action}">
${fields}
${credentials({ username, error })}
<button type="submit">Sign in</button>
</form>
${passkeyButton(passkey)}
${ssoButton(external)}`;
}
