import { type Html, html } from "./html.ts";
import { describedBy } from "./page.ts";

/** The two fields of a sign-in. What is still to be typed has the focus. */
export function credentials({
  username = "",
  error,
}: {
  username?: string;
  error?: string | undefined;
}): Html {
  return html`<label for="username">Username</label>
<input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" required${focus(!username)}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${describedBy(error)}${focus(Boolean(username))}>`;
}

/** Gives a field the focus when the page opens. */
export function focus(isNext: boolean): Html {
  return isNext ? html` autofocus` : html``;
}

/** A field that the person does not see. */
export function hidden(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`;
}

/** How to sign in with the external identity provider. */
export type External = { name: string; href: string; isAway: boolean };

/** The button of the external identity provider, or why there is none to press. */
export function externalButton(external: External | undefined): Html {
  if (!external) return html``;
  const { name, href, isAway } = external;
  if (isAway)
    return html`<p class="hint">${name} cannot be reached at the moment. Try again in a minute.</p>`;
  return html`<p><a class="button quiet" href="${href}">Continue with ${name}</a></p>`;
}
