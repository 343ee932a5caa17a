import type { Context } from "koa";
import { type Html, html } from "../ui/html.ts";
import { alert } from "../ui/page.ts";
import { credentials, passkeyButton, ssoButton } from "../ui/sign-in.ts";
import type { AuthOptions } from "./auth-options.ts";

type SignInForm = {
  action: string;
  fields: Html;
  returnTo: string;
  /** Whether the identity provider must ask a user who is signed in there. */
  again: boolean;
  username?: string | undefined;
  error?: string | undefined;
};

/** Renders the form with username and password, and the other ways to sign in. */
export async function signInForm(
  ctx: Context,
  { ssoOption, passkeyOption }: Pick<AuthOptions, "ssoOption" | "passkeyOption">,
  { action, fields, returnTo, again, username = "", error }: SignInForm,
): Promise<Html> {
  return html`${alert(error, "error")}
<form method="post" action="${action}">
${fields}
${credentials({ username, error })}
<button type="submit">Sign in</button>
</form>
${passkeyButton(await passkeyOption(ctx, returnTo))}
${ssoButton(await ssoOption(returnTo, { again }))}`;
}
